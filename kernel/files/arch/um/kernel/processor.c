// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that ask the processor for the time: rdtsc and rdtscp. They fault in a guest (os-Linux/template.c), and are
 * answered in virtual time: a tick of the counter is 1 ns since the kernel's start.
 */

#include <linux/sched.h>
#include <linux/uaccess.h>
#include <asm/ptrace.h>
#include <asm/unistd.h>
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
 * aborts. So readings at one instant are some ns apart, by a sequence that is the same in every run.
 */
static u64 next_reading(u64 ns)
{
	static u64 last;
	static u32 noise = 0x9e3779b9;

	noise ^= noise << 13;
	noise ^= noise >> 17;
	noise ^= noise << 5;
	last = max(ns, last) + 1 + noise % 16;
	return last;
}

/*
 * Whether a reading is one of a loop that waits until the counter moves on: time has to move then. It takes jitterentropy some hundred
 * thousand readings to gather what it wants.
 */
enum { MANY_READINGS = 1 << 20, ONE_INSTANT_NS = 2000 };

static bool waits_for_time(u64 ns)
{
	static u64 since;
	static u32 readings;

	if (ns - since > ONE_INSTANT_NS) {
		since = ns;
		readings = 0;
	}
	return ++readings > MANY_READINGS;
}

/* Does what the instruction at this place would do. */
void um_answer_for_processor(struct uml_pt_regs *regs, int length)
{
	bool waits = waits_for_time(um_monotonic_ns());
	u64 ns;

	/* Then it is a reading of the clock as others are. */
	if (waits)
		um_before_call(__NR_clock_gettime);
	ns = next_reading(um_monotonic_ns());
	UPT_AX(regs) = (u32)ns;
	UPT_DX(regs) = ns >> 32;
	/* The number of the processor. */
	if (length == 3)
		UPT_CX(regs) = 0;
	UPT_IP(regs) += length;
	if (waits)
		um_after_call(__NR_clock_gettime, 0);
}
