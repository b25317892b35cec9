// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that ask the processor for the time: rdtsc and rdtscp. They fault in a guest (os-Linux/template.c), and are
 * answered in virtual time: a tick of the counter is 1 ns since the kernel's start.
 */

#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/ptrace.h>
#include <template.h>

/* The length of such an instruction where a process has stopped; 0: it is none. */
int um_asks_processor(struct uml_pt_regs *regs)
{
	const unsigned char __user *at = (const unsigned char __user *)UPT_IP(regs);
	unsigned char code[3];

	/* The last byte may be on another page, and rdtsc has two. */
	if (copy_from_user_nofault(code, at, 2) || code[0] != 0x0f)
		return 0;
	if (code[1] == 0x31)
		return 2;
	if (code[1] == 0x01 && !copy_from_user_nofault(code + 2, at + 2, 1) && code[2] == 0xf9)
		return 3;
	return 0;
}

/*
 * Computing takes no virtual time. A program that gathers randomness from how long it takes (jitterentropy, of AWS-LC) finds none, and
 * aborts; one that waits until the counter has moved on waits for ever. So readings are some ns apart, by a sequence that is the same in
 * every run, and time follows: whoever reads sleeps until it does. It takes jitterentropy some hundred thousand readings to gather what it
 * wants. A loop that waits is not to take that many for a millisecond: after many readings without a system call they are further apart.
 */
enum { MOST_LEAD_NS = 1000, MANY_READINGS = 10000, STEP_NS = 16, LARGE_STEP_NS = 1024, PROCESSES = 64 };

/* A process loses its count to another one with the same place, and then begins anew. */
static struct {
	pid_t process;
	u32 readings;
} since_call[PROCESSES];

void um_forget_readings(void)
{
	since_call[current->tgid % PROCESSES].readings = 0;
}

static u32 readings_since_call(void)
{
	typeof(since_call[0]) *own = &since_call[current->tgid % PROCESSES];

	if (own->process != current->tgid) {
		own->process = current->tgid;
		own->readings = 0;
	}
	return ++own->readings;
}

static u64 next_reading(void)
{
	static u64 last;
	static u32 noise = 0x9e3779b9;
	u64 reading, now = um_monotonic_ns();

	noise ^= noise << 13;
	noise ^= noise >> 17;
	noise ^= noise << 5;
	last = max(now, last) + 1 + noise % (readings_since_call() > MANY_READINGS ? LARGE_STEP_NS : STEP_NS);
	reading = last;
	if (reading - now > MOST_LEAD_NS)
		um_sleep_for(reading - now);
	return reading;
}

/* Does what the instruction at this place would do. */
void um_answer_for_processor(struct uml_pt_regs *regs, int length)
{
	u64 ns = next_reading();

	UPT_AX(regs) = (u32)ns;
	UPT_DX(regs) = ns >> 32;
	/* The number of the processor. */
	if (length == 3)
		UPT_CX(regs) = 0;
	UPT_IP(regs) += length;
}
