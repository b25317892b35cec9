/* One forwarding process for many cells, or one for each? Measures the processor time of a packet and how late it is released.
 *
 *   forwarders [SECONDS [ROUNDS]]      default 5 3; as root, with two processors free
 *
 * A pair is two namespaces with a TUN device each, and one UDP message going back and forth between them, 10 ms each way.
 * Hosts share processor 0. Forwarders have processor 1 and real-time priority, and sleep until a packet is due: a process
 * for `each` pair, `threads` for the pairs in one process, or `one` thread for all. They run the same loop, and take turns.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOST_CPU, FORWARDER_CPU, PRIORITY = 20, PORT = 9000, MTU = 1500 };
enum { SIZES = 4, PAIRS = 100, MAX_SECONDS = 20, MAX_ROUNDS = 100, ROOM = 2048 /* samples of a pair */ };
enum { EACH, THREADS, ONE, MODES };
enum { PACKETS, CPU, WAKEUPS, LATE_50, LATE_99, LATE_MAX, USED, BUSY, OVER_50, OVER_99, LOST, FIGURES };
static const char *const mode_names[] = {"each", "threads", "one"};
static const int sizes[SIZES] = {1, 10, 50, PAIRS};
static const int64_t MS = 1000000, SECOND = 1000000000, DELAY = 10 * MS, WARMUP = 500 * MS;

struct packet { int64_t due; int to, length; unsigned char bytes[MTU]; };
struct heap { struct packet **at; int count; };
static struct pair { int tun[2], host[2]; uint32_t sequence; int64_t phase; } pairs[PAIRS];
static int span;   /* pairs that a forwarder serves */
static atomic_long trips, lost;
static double over[PAIRS * ROOM];   /* ns */
/* Shared with child processes: when to measure, and what the forwarders saw. */
static struct { atomic_long ready, begin, end, packets, wakeups, cpu; double late[PAIRS * ROOM]; } *shared;

static long check(long result, const char *what) {
    if (result < 0) err(1, "%s", what);
    return result;
}

static int64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}
static int64_t now(void) { return clock_ns(CLOCK_MONOTONIC); }

static void sleep_until(int64_t at) {
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){at / SECOND, at % SECOND}, NULL)) {}
}

static void pin(int cpu) {
    unsigned long set = 1ul << cpu;
    check(sched_setaffinity(0, sizeof set, (cpu_set_t *)&set), "sched_setaffinity");
}

static void set_sysctl(const char *path, const char *value) {
    int file = check(open(path, O_WRONLY), path);
    check(write(file, value, strlen(value)), path);
    close(file);
}

static void make_host(struct pair *pair, int side) {
    check(unshare(CLONE_NEWNET), "unshare");
    set_sysctl("/proc/sys/net/core/rps_default_mask", "1");   /* the hosts' kernel work is on processor 0 */
    set_sysctl("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    int tun = pair->tun[side] = check(open("/dev/net/tun", O_RDWR | O_NONBLOCK), "/dev/net/tun");
    struct ifreq request = {.ifr_name = "path0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    check(ioctl(tun, TUNSETIFF, &request), "TUNSETIFF");
    check(ioctl(tun, TUNSETPERSIST, 1), "TUNSETPERSIST");
    int s = pair->host[side] = check(socket(AF_INET, SOCK_DGRAM, 0), "socket");
    struct sockaddr_in address[2], mask = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xfffffffc)};
    for (int i = 0; i < 2; i++)
        address[i] = (struct sockaddr_in){AF_INET, htons(PORT), {htonl(0xc6120001 + i)}, {0}};   /* 198.18.0.1 and .2 */
    memcpy(&request.ifr_addr, &address[side], sizeof *address);
    check(ioctl(s, SIOCSIFADDR, &request), "SIOCSIFADDR");
    memcpy(&request.ifr_netmask, &mask, sizeof mask);   /* the route to the peer comes with it */
    check(ioctl(s, SIOCSIFNETMASK, &request), "SIOCSIFNETMASK");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    check(ioctl(s, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_usec = 200000}, sizeof(struct timeval));
    check(bind(s, (struct sockaddr *)&address[side], sizeof *address), "bind");
    check(connect(s, (struct sockaddr *)&address[!side], sizeof *address), "connect");
}

static void *run_client(void *argument) {
    struct pair *pair = argument;
    uint32_t message[16] = {0}, reply[16];
    sleep_until(shared->begin - WARMUP + pair->phase);
    for (int64_t sent, n; (sent = now()) < shared->end;) {
        message[0] = ++pair->sequence;
        check(send(pair->host[0], message, sizeof message, 0), "send");
        do n = recv(pair->host[0], reply, sizeof reply, 0); while (n > 0 && reply[0] != message[0]);
        int64_t received = now();
        if (sent < shared->begin || received >= shared->end) continue;
        if (n < 0) lost++;
        else over[trips++] = received - sent - 2 * DELAY;
    }
    return NULL;
}

static void *run_server(void *argument) {
    struct pair *pair = argument;
    uint32_t message[16];
    while (now() < shared->end) {
        long n = recv(pair->host[1], message, sizeof message, 0);
        if (n > 0) check(send(pair->host[1], message, n, 0), "send");
    }
    return NULL;
}

static void push(struct heap *heap, struct packet *packet) {
    int i = heap->count++;
    for (; i && heap->at[(i - 1) / 2]->due > packet->due; i = (i - 1) / 2) heap->at[i] = heap->at[(i - 1) / 2];
    heap->at[i] = packet;
}

/* The entry that is taken out stays behind the end of the heap, where the next packet can use it. */
static struct packet *pop(struct heap *heap) {
    struct packet *first = heap->at[0], *last = heap->at[--heap->count];
    int i = 0;
    for (int child; (child = 2 * i + 1) < heap->count; i = child) {
        if (child + 1 < heap->count && heap->at[child + 1]->due < heap->at[child]->due) child++;
        if (heap->at[child]->due >= last->due) break;
        heap->at[i] = heap->at[child];
    }
    heap->at[i] = last;
    heap->at[heap->count] = first;
    return first;
}

/* Writes what is due; `late` takes how late each was, if it is measured. */
static int64_t release(struct heap *heap, double *late, long *packets) {
    int64_t t;
    while (t = now(), heap->count && heap->at[0]->due <= t) {
        struct packet *packet = pop(heap);
        if (packet->due >= shared->begin && packet->due < shared->end) late[(*packets)++] = t - packet->due;
        check(write(packet->to, packet->bytes, packet->length), "write");
    }
    return t;
}

static void *forward(void *argument) {
    struct pair *served = argument;
    int epoll = check(epoll_create1(0), "epoll_create1"), most = 4 * span;
    long packets = 0, wakeups = 0, cpu = 0;
    double *late = calloc(span * ROOM, sizeof *late);
    struct heap heap = {calloc(most, sizeof *heap.at), 0};
    struct packet *slots = calloc(most, sizeof *slots);
    for (int i = 0; i < most; i++) heap.at[i] = &slots[i];
    for (int i = 0; i < 2 * span; i++) {
        int tun = served[i / 2].tun[i % 2];
        while (read(tun, slots, sizeof *slots) > 0) {}   /* from the run before */
        check(epoll_ctl(epoll, EPOLL_CTL_ADD, tun, &(struct epoll_event){EPOLLIN, {.u32 = i}}), "epoll_ctl");
    }
    check(prctl(PR_SET_TIMERSLACK, 1), "PR_SET_TIMERSLACK");
    check(sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){PRIORITY}), "sched_setscheduler");
    shared->ready++;
    while (!shared->begin) sleep_until(now() + 5 * MS);
    for (int64_t t; (t = release(&heap, late, &packets)) < shared->end; wakeups += cpu > 0) {
        if (!cpu && t >= shared->begin) cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        struct epoll_event events[64];
        int64_t next = cpu ? shared->end : shared->begin;
        if (heap.count && heap.at[0]->due < next) next = heap.at[0]->due;
        int n = epoll_pwait2(epoll, events, 64, &(struct timespec){(next - t) / SECOND, (next - t) % SECOND}, NULL);
        for (int k = 0; k < n && heap.count < most; k++) {
            int i = events[k].data.u32;
            struct packet *packet = heap.at[heap.count];
            packet->length = read(served[i / 2].tun[i % 2], packet->bytes, MTU);
            if (packet->length <= 0) continue;
            packet->due = now() + DELAY;
            packet->to = served[i / 2].tun[!(i % 2)];
            push(&heap, packet);
            release(&heap, late, &packets);
        }
    }
    shared->cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    shared->wakeups += wakeups;
    memcpy(&shared->late[atomic_fetch_add(&shared->packets, packets)], late, packets * sizeof *late);
    sleep_until(shared->end + WARMUP);   /* exiting would take the processor from forwarders that still run */
    return NULL;
}

static pid_t start_process(struct pair *first, int forwarders) {
    pid_t child = check(fork(), "fork");
    if (child) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(FORWARDER_CPU);
    check(mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");   /* no page faults later */
    pthread_t threads[PAIRS];
    for (int i = 1; i < forwarders; i++) check(-pthread_create(&threads[i], NULL, forward, first + i), "pthread_create");
    forward(first);
    for (int i = 1; i < forwarders; i++) pthread_join(threads[i], NULL);
    _exit(0);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantiles of samples in ns, in us. */
static void quantiles(double *samples, long count, const double *shares, int n, double *out) {
    qsort(samples, count, sizeof *samples, by_value);
    for (int i = 0; i < n && count; i++) out[i] = samples[(long)(shares[i] * (count - 1))] / 1e3;
}

static double forwarder_cpu_idle(void) {   /* seconds */
    char line[256];
    double idle = 0, cpu;
    FILE *file = fopen("/proc/stat", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "cpu%lf %*f %*f %*f %lf", &cpu, &idle) == 2 && cpu == FORWARDER_CPU) break;
    if (file) fclose(file);
    return idle / sysconf(_SC_CLK_TCK);
}

static void measure(int mode, int size, int round, int seconds, double *f) {
    int forwarders = mode == ONE ? 1 : size, processes = mode == EACH ? size : 1, status;
    pid_t children[PAIRS];
    pthread_t hosts[2 * PAIRS];
    memset(shared, 0, sizeof *shared);
    trips = lost = 0;
    span = size / forwarders;
    for (int i = 0; i < processes; i++) children[i] = start_process(&pairs[i], forwarders / processes);
    while (shared->ready < forwarders) {
        sleep_until(now() + 5 * MS);
        if (waitpid(-1, &status, WNOHANG)) errx(1, "a forwarder failed");
    }
    shared->end = now() + 2 * WARMUP + seconds * SECOND;
    shared->begin = shared->end - seconds * SECOND;
    srand48(round);   /* the same for every mode of a round */
    for (int i = 0; i < size; i++) {
        pairs[i].phase = drand48() * 2 * DELAY;
        for (int k = 0; k < 2; k++)
            check(-pthread_create(&hosts[2 * i + k], NULL, k ? run_client : run_server, &pairs[i]), "pthread_create");
    }
    sleep_until(shared->begin);
    double idle = forwarder_cpu_idle();
    sleep_until(shared->end);
    idle = forwarder_cpu_idle() - idle;
    for (int i = 0; i < 2 * size; i++) pthread_join(hosts[i], NULL);
    for (int i = 0; i < processes; i++)
        if (waitpid(children[i], &status, 0) < 0 || status) errx(1, "a forwarder failed");
    f[PACKETS] = shared->packets;
    f[CPU] = shared->cpu / 1e3 / shared->packets;
    f[WAKEUPS] = (double)shared->wakeups / shared->packets;
    quantiles(shared->late, shared->packets, (double[]){0.5, 0.99, 1}, 3, &f[LATE_50]);
    f[USED] = shared->cpu / 1e7 / seconds;
    f[BUSY] = 100 * (1 - idle / seconds);
    quantiles(over, trips, (double[]){0.5, 0.99}, 2, &f[OVER_50]);
    f[LOST] = lost;
}

int main(int argc, char **argv) {
    static double table[SIZES * MODES][FIGURES][MAX_ROUNDS], f[FIGURES];
    int seconds = argc > 1 ? atoi(argv[1]) : 5, rounds = argc > 2 ? atoi(argv[2]) : 3;
    if (seconds < 1 || seconds > MAX_SECONDS || rounds < 1 || rounds > MAX_ROUNDS)
        errx(2, "usage: forwarders [SECONDS [ROUNDS]], at most %d and %d", MAX_SECONDS, MAX_ROUNDS);
    alarm(120 + rounds * SIZES * MODES * (seconds + 25));
    pin(HOST_CPU);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 16);
    pthread_setattr_default_np(&attributes);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(shared == MAP_FAILED ? -1 : 0, "mmap");
    for (int i = 0; i < 2 * PAIRS; i++) make_host(&pairs[i / 2], i % 2);
    printf("cpu, late, over (20 ms of round trip): us; wakeups: a packet; used by forwarders, busy: %%; last the medians\n"
        "load pairs mode    packets    cpu wakeups late p50      p99      max   used   busy over p50      p99 lost\n");
    for (int round = 0; round <= rounds; round++)
        for (int i = 0; i < SIZES * MODES; i++) {
            double load = 0;
            if (round < rounds) {
                getloadavg(&load, 1);
                measure(i % MODES, sizes[i / MODES], round, seconds, f);
                for (int k = 0; k < FIGURES; k++) table[i][k][round] = f[k];
            } else for (int k = 0; k < FIGURES; k++) {
                qsort(table[i][k], rounds, sizeof(double), by_value);
                f[k] = table[i][k][rounds / 2];
            }
            printf("%4.1f %5d %-7s %7.0f %6.2f %7.2f %8.1f %8.1f %8.1f %6.2f %6.2f %8.1f %8.1f %4.0f\n", load, sizes[i / MODES],
                mode_names[i % MODES], f[PACKETS], f[CPU], f[WAKEUPS], f[LATE_50], f[LATE_99], f[LATE_MAX], f[USED], f[BUSY],
                f[OVER_50], f[OVER_99], f[LOST]);
            fflush(stdout);
        }
    return 0;
}
