"""What programs may expect of a machine, and find in virtual time too: a clock wherever they read it, and much room."""

import subprocess
from pathlib import Path

import pytest

from conftest import requires
from linux.lab import ms
from virtual.lab import VirtualCells, VirtualRun

HEAD = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
static uint64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}
static uint64_t of_day(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return now.tv_sec * 1000000ull + now.tv_usec;
}
"""

COUNTER = """
int main(void)
{
    unsigned processor;
    uint64_t before = __rdtsc(), clock = monotonic();
    usleep(20000);
    uint64_t after = __rdtscp(&processor), slept = monotonic() - clock;
    printf("%lu %lu %lu %u\\n", before - clock, after - before, slept, processor);
}
"""

# Until 10 ms have passed, and how often that takes a look.
LOOP = """
int main(void)
{
    uint64_t begun = monotonic(), start = CLOCK(), looks = 0;
    while (CLOCK() - start < 10000000 / UNIT) looks++;
    printf("%lu %lu\\n", monotonic() - begun, looks);
}
"""

# How long 100,000 readings take.
READINGS = """
int main(void)
{
    uint64_t begun = monotonic(), last = begun;
    for (int left = 100000; left; left--) last = monotonic();
    printf("%lu\\n", last - begun);
}
"""

WAITING_THREAD = """
static volatile int done;
static void *work(void *unused)
{
    done = 1;
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    while (!done);
    pthread_join(thread, NULL);
    puts("joined");
}
"""

ROOM = """
int main(void)
{
    size_t size = 8ull << 40;
    volatile char *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) { perror("mmap"); return 1; }
    for (size_t at = 0; at < size; at += size / 8) {
        if (mprotect((void *)(room + at), 4096, PROT_READ | PROT_WRITE)) { perror("mprotect"); return 1; }
        room[at] = at >> 40;
    }
    for (size_t at = 0; at < size; at += size / 8) if (room[at] != at >> 40) return 1;
    if (munmap((void *)room, size)) { perror("munmap"); return 1; }
    FILE *cpu = fopen("/proc/cpuinfo", "r");
    for (char line[4096]; fgets(line, sizeof line, cpu);) if (line[0] == 'c' && line[4] == 'M') fputs(line, stdout);
}
"""


def ran(cells: VirtualCells, tmp_path: Path, source: str, *flags: str) -> VirtualRun:
    """A C program's run to its end."""
    program = tmp_path / "program"
    compiled = [requires("gcc"), "-O1", "-pthread", *flags, "-x", "c", "-", "-o", str(program)]
    subprocess.run(compiled, input=HEAD + source, text=True, check=True)
    made = cells.run({"kind": "program", "client": [str(program)], "timeout_ns": ms(60_000)})
    assert made.finished.program is not None
    assert made.finished.program.ok, made.text("client.err")
    return made


def test_the_processors_counter_is_virtual_time_in_nanoseconds(cells: VirtualCells, tmp_path: Path) -> None:
    runs = [ran(cells, tmp_path, COUNTER) for _ in range(2)]
    assert runs[0].digests() == runs[1].digests()
    apart, ticks, slept_ns, processor = map(int, runs[0].text("client.out").split())
    # Each reading adds 1 to 16 ns, so that no two are the same. The C library has made some tens at its start.
    assert 0 < apart < 1000 and processor == 0
    assert abs(ticks - slept_ns) < 1000
    assert ms(20) <= ticks <= ms(20.06)


@pytest.mark.parametrize(("clock", "unit"), [("monotonic", 1), ("of_day", 1000)])
def test_a_loop_that_reads_a_clock_sees_it_move(cells: VirtualCells, tmp_path: Path, clock: str, unit: int) -> None:
    runs = [ran(cells, tmp_path, LOOP, f"-DCLOCK={clock}", f"-DUNIT={unit}") for _ in range(2)]
    assert runs[0].digests() == runs[1].digests()
    took_ns, looks = map(int, runs[0].text("client.out").split())
    # 10,000 readings are free. Each 1,000 further ones cost 1/128 of what the loop has paid, those behind the loop too.
    assert ms(9.99) <= took_ns <= ms(10.2)
    assert 600_000 <= looks <= 750_000
    assert runs[0].finished.is_repeatable


def test_a_program_that_reads_a_clock_and_waits_for_nothing_takes_hardly_any_time(
    cells: VirtualCells, tmp_path: Path
) -> None:
    took_ns = int(ran(cells, tmp_path, READINGS).text("client.out"))
    # 90 times 1,000 readings, each for 1 us.
    assert ms(0.085) <= took_ns <= ms(0.1)


def test_a_loop_that_reads_the_processors_counter_takes_as_long_as_it_waits(
    cells: VirtualCells, tmp_path: Path
) -> None:
    runs = [ran(cells, tmp_path, LOOP, "-DCLOCK=__rdtsc", "-DUNIT=1") for _ in range(2)]
    assert runs[0].digests() == runs[1].digests()
    took_ns, looks = map(int, runs[0].text("client.out").split())
    # The counter is at most two steps ahead. After 10,000 readings a step is up to 1,024 ns.
    assert abs(took_ns - ms(10)) <= 2 * 1024
    assert 25_000 <= looks <= 35_000


def test_a_thread_that_waits_for_another_one_without_a_call_is_interrupted(cells: VirtualCells, tmp_path: Path) -> None:
    made = ran(cells, tmp_path, WAITING_THREAD)
    assert made.text("client.out") == "joined\n"
    (warning,) = made.finished.warnings
    assert warning.name == "interrupted"
    assert warning.text.startswith("not exact: the machine decided when threads ran. program computed for a second")
    assert not made.finished.is_repeatable


def test_a_process_may_map_8_tib(cells: VirtualCells, tmp_path: Path) -> None:
    made = ran(cells, tmp_path, ROOM)
    assert made.text("client.out") == "cpu MHz\t\t: 1000.000\n"
