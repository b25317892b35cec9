// SPDX-License-Identifier: GPL-2.0
/*
 * What threads act upon (linux/cause.h).
 */

#include <linux/cause.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <template.h>

/* So many timers are remembered. What a program sends goes out at the same instant, unless TCP holds it back. */
enum { TIMERS = 1024 };

static struct {
	u64 number;
	pid_t thread;
	struct cause_timer told;
} timers[TIMERS];

u64 cause_of_interrupt;

u64 cause_now(void)
{
	return cause_of_interrupt || in_hardirq() ? cause_of_interrupt : current->cause;
}

/* One number for all timers in a row that wake a thread while nothing else does. */
static u64 number_of_timer(const struct task_struct *thread)
{
	static u64 last = CAUSE_TIMER;
	u64 before = thread->cause;
	unsigned int at = before % TIMERS;

	if (timers[at].number == before && timers[at].thread == thread->pid)
		return before;
	at = ++last % TIMERS;
	timers[at].number = last;
	timers[at].thread = thread->pid;
	timers[at].told.since = thread->slept_since;
	timers[at].told.before = before;
	memcpy(timers[at].told.thread, thread->comm, sizeof(timers[at].told.thread));
	return last;
}

void cause_wake(struct task_struct *thread)
{
	u64 cause = cause_now();

	thread->cause = cause == CAUSE_TIMER && thread->mm ? number_of_timer(thread) : cause;
}

struct cause_timer cause_timer(u64 cause)
{
	unsigned int at = cause % TIMERS;

	return timers[at].number == cause ? timers[at].told : (struct cause_timer){};
}
