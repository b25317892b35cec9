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

/* Does what the instruction at this place would do. */
void um_answer_for_processor(struct uml_pt_regs *regs, int length)
{
	unsigned long long ns;

	/* It is a reading of the clock as others are. */
	um_before_call(__NR_clock_gettime);
	ns = um_monotonic_ns();
	UPT_AX(regs) = (u32)ns;
	UPT_DX(regs) = ns >> 32;
	/* The number of the processor. */
	if (length == 3)
		UPT_CX(regs) = 0;
	UPT_IP(regs) += length;
	um_after_call(__NR_clock_gettime, 0);
}
