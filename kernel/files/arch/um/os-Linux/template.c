// SPDX-License-Identifier: GPL-2.0
/*
 * The host's side of arch/um/kernel/template.c: takes requests, and copies this process with the guest's memory.
 *
 * The guest's memory is a file that is mapped shared, for its processes map it too. So a fork alone would share it: the
 * child copies the file and maps the copy where the file was. The stack of a kernel thread lies in that memory, which is
 * why the child works on a stack of its own and then jumps back.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <longjmp.h>
#include <os.h>
#include <template.h>

enum { FILES = 4, STATE_FILE = 3, STATE_SIZE = 4096, STACK_SIZE = 65536, MAPS_SIZE = 1 << 20 };

/*
 * None of this is in the guest's memory. The child does not call anything that allocates: malloc here is the kernel's,
 * which finds its current task by the stack.
 */
static struct {
	char request[TEMPLATE_REQUEST_SIZE];
	int files[FILES];
	int cpu;
	int memory;
	int copied[2];
	struct sigaction on_child_end;
	jmp_buf back;
} template;
static char child_stack[STACK_SIZE] __attribute__((aligned(16)));
static char maps[MAPS_SIZE];

static unsigned long long random_state = 0x9e3779b97f4a7c15ULL;

void os_seed_random(unsigned long long seed)
{
	random_state = seed ^ 0x9e3779b97f4a7c15ULL;
}

/* splitmix64 (Steele, Lea, Flood, 2014). It seeds the kernel's own generator, and need not be strong. */
ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *to = buf;
	unsigned long long x = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (i % 8 == 0) {
			x = random_state += 0x9e3779b97f4a7c15ULL;
			x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
			x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
			x ^= x >> 31;
		}
		to[i] = x >> 8 * (i % 8);
	}
	return len;
}

static void fail(const char *what)
{
	const char *why = strerrorname_np(errno) ?: "?";

	(void)!write(2, what, strlen(what));
	(void)!write(2, ": ", 2);
	(void)!write(2, why, strlen(why));
	(void)!write(2, "\n", 1);
	_exit(1);
}

/* 1: a request, 0: nobody will ask any more. */
static int receive(int socket)
{
	char control[CMSG_SPACE(sizeof(int) * FILES)];
	struct iovec text = { template.request, sizeof(template.request) - 1 };
	struct msghdr message = {
		.msg_iov = &text, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *passed;
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		fail("cannot receive a request");
	if (got == 0)
		return 0;
	template.request[got] = 0;
	passed = CMSG_FIRSTHDR(&message);
	if (!passed || passed->cmsg_type != SCM_RIGHTS || passed->cmsg_len != CMSG_LEN(sizeof(int) * FILES))
		fail("a request without its files");
	memcpy(template.files, CMSG_DATA(passed), sizeof(template.files));
	return 1;
}

static int requested_cpu(void)
{
	const char *at = strstr(template.request, "cpu=");

	return at ? atoi(at + 4) : -1;
}

static int copy_of(int memory)
{
	struct stat stat;
	off_t data = 0, end;
	int copy = memfd_create("guest-memory", MFD_CLOEXEC);

	if (copy < 0 || fstat(memory, &stat) < 0 || ftruncate(copy, stat.st_size) < 0)
		fail("cannot make a guest's memory");
	while ((data = lseek(memory, data, SEEK_DATA)) >= 0) {
		end = lseek(memory, data, SEEK_HOLE);
		if (end < 0 || lseek(copy, data, SEEK_SET) < 0)
			fail("cannot copy a guest's memory");
		while (data < end)
			if (sendfile(copy, memory, &data, end - data) <= 0)
				fail("cannot copy a guest's memory");
	}
	return copy;
}

/* Maps the copy wherever the original is mapped. A line: start-end perms offset major:minor inode path */
static void map_instead(int memory, int copy)
{
	struct stat stat;
	size_t length = 0;
	ssize_t got;
	char *line, *next;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(memory, &stat) < 0)
		fail("cannot read /proc/self/maps");
	while ((got = read(fd, maps + length, sizeof(maps) - 1 - length)) > 0)
		length += got;
	close(fd);
	maps[length] = 0;
	for (line = maps; *line; line = next) {
		unsigned long start, end, offset, major, minor;
		int protection;
		char *at = line;

		next = strchrnul(line, '\n');
		if (*next)
			*next++ = 0;
		start = strtoul(at, &at, 16);
		end = strtoul(at + 1, &at, 16);
		protection = (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) | (at[3] == 'x' ? PROT_EXEC : 0);
		offset = strtoul(at + 5, &at, 16);
		major = strtoul(at, &at, 16);
		minor = strtoul(at + 1, &at, 16);
		if (strtoul(at, NULL, 10) != stat.st_ino || makedev(major, minor) != stat.st_dev)
			continue;
		if (mmap((void *)start, end - start, protection, MAP_SHARED | MAP_FIXED, copy, offset) == MAP_FAILED)
			fail("cannot map a guest's memory");
	}
}

static int become_guest(void *unused)
{
	void *state;
	cpu_set_t cpus;
	int copy, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsid();
	sigaction(SIGCHLD, &template.on_child_end, NULL);
	if (template.cpu >= 0) {
		CPU_ZERO(&cpus);
		CPU_SET(template.cpu, &cpus);
		/* Not by the library's name for it, which is the kernel's own function here. */
		syscall(SYS_sched_setaffinity, 0, sizeof(cpus), &cpus);
	}
	copy = copy_of(template.memory);
	map_instead(template.memory, copy);
	if (dup3(copy, template.memory, O_CLOEXEC) < 0)
		fail("cannot keep a guest's memory");
	close(copy);
	for (i = 0; i < STATE_FILE; i++)
		if (dup2(template.files[i], i) < 0)
			fail("cannot open a guest's files");
	state = mmap(NULL, STATE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, template.files[STATE_FILE], 0);
	if (state == MAP_FAILED)
		fail("cannot map a guest's state");
	um_guest_state = state;
	for (i = 0; i < FILES; i++)
		close(template.files[i]);
	(void)!write(template.copied[1], "", 1);
	close(template.copied[0]);
	close(template.copied[1]);
	longjmp(template.back, 1);
	return 0;
}

/*
 * Returns in each guest, with its request. The template itself never returns: it ends when nobody can ask any more.
 */
int os_template_serve(int socket, int memory, char *request, int size)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	char done;
	int pid, i;

	template.memory = memory;
	/*
	 * Here and not in each process: where one that may read the counter follows one that may not, the host's processor is
	 * switched over, which takes as long as a system call. A host that refuses shows guests its own counter.
	 */
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	if (setjmp(template.back)) {
		close(socket);
		strncpy(request, template.request, size - 1);
		return 0;
	}
	/* Nobody waits for guests; who asked sees their output end. */
	sigaction(SIGCHLD, &ignore, &template.on_child_end);
	while (receive(socket)) {
		template.cpu = requested_cpu();
		if (pipe2(template.copied, O_CLOEXEC) < 0)
			return -errno;
		pid = clone(become_guest, child_stack + STACK_SIZE, SIGCHLD, NULL);
		close(template.copied[1]);
		for (i = 0; i < FILES; i++)
			close(template.files[i]);
		/* The guest's memory is still ours until the copy is made. */
		if (pid > 0)
			(void)!read(template.copied[0], &done, 1);
		close(template.copied[0]);
		(void)!write(socket, &pid, sizeof(pid));
	}
	_exit(0);
}
