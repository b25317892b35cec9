/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a thread acts upon. Computing takes no time, so that what a program sends was caused by what last woke its thread, or by what
 * that thread has read since: a packet that the emulated path (arch/um/kernel/path.c) has delivered, or a timer. A thread hands it on to
 * those that it wakes, and to what it sends.
 *
 * The numbers are those of crates/packet/src/waking.rs. 0: nothing that is known.
 */
#ifndef _LINUX_CAUSE_H
#define _LINUX_CAUSE_H

#include <linux/types.h>

#define CAUSE_PACKET	(1ULL << 63)	/* and its index in its direction */
#define CAUSE_REVERSE	(1ULL << 62)	/* of a packet: it went to the client */
#define CAUSE_TIMER	(1ULL << 61)	/* and a number of its own, once it has woken a program's thread */

struct cause_timer {
	u64 since;	/* when the thread had gone to sleep: the first time, if several timers have woken it in turn */
	u64 before;	/* what it had acted upon until then */
	u8 thread[16];	/* its name */
};

struct task_struct;

/* Of the packet being delivered, or the timer being run; 0: of whatever runs. There is one processor. */
extern u64 cause_of_interrupt;

u64 cause_now(void);
void cause_wake(struct task_struct *thread);
struct cause_timer cause_timer(u64 cause);

#endif
