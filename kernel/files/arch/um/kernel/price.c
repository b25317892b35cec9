// SPDX-License-Identifier: GPL-2.0
/*
 * What system calls cost in virtual time, where computing takes none.
 *
 * Nothing, as a rule. But a process that asks again and again for what only time can bring would ask for ever: it never
 * sleeps, and time moves only when all processes sleep. So a process that asks so often while no time passes pays for
 * each further call with time. It pays by sleeping, so that everybody else does meanwhile what is due, on time; and the
 * first thing that anybody else does ends the sleep, because it may be what the process waits for.
 */

#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/time-internal.h>
#include <asm/unistd.h>
#include <template.h>

enum {
	/* A program asks each of its files once when it wakes up: so many calls that bring nothing new are no loop yet. */
	FRUITLESS_CALLS = 32,
	/* Programs read clocks often, and ask what the kernel knows: so many times without doing anything are no loop yet. */
	QUESTIONS = 10000,
	/* Some read a clock far more often, and wait for nothing: from then on so many readings cost as much as one call. */
	READINGS_A_CALL = 1000,
	/* A program that starts opens and reads many files: so many calls of any kind without ever waiting are no loop yet. */
	CALLS = 100000,

	LEAST_PRICE_NS = 1000,
	MOST_PRICE_NS = NSEC_PER_MSEC,
	/* Of the time that a loop has lasted, as its next call's price: it notices its own clock's end late by less than 1 %. */
	PRICE_SHARE = 128,

	/* A loop in the kernel that lets others run so often, in one system call, waits for one of them. */
	TURNS = 1000,
	/* One that is about to wait, in one of these ways, may wake up before its time: it looks again whether it has to wait. */
	MAY_WAKE_EARLY = TASK_NORMAL | TASK_WAKEKILL | TASK_NOLOAD | TASK_FREEZABLE,

	/* A process with several threads may compute for so long, and wait for none of them. */
	SECONDS_ALONE = 3,

	/* A call reads the clock a few times, which takes 1 ns each: no time that has passed. */
	NS_A_CALL = 4,
	/* A process has one by its number. It loses it to another that has the same one, and then begins anew. */
	ACCOUNTS = 1024,
};

enum outcome {
	PROGRESS,	/* it did something */
	ANSWERED,	/* it asked for something that the kernel knows, such as the time */
	FOUND,		/* a poll that found something */
	FRUITLESS,	/* it failed, or found nothing */
};

/*
 * How far a process is with work that takes each machine longer than a microsecond: to poll and to receive, between two
 * readings of the clock. Curl takes a timer that it has set meanwhile for one from before where both readings are the same.
 */
enum work {
	NONE,
	READ_CLOCK,
	POLLED,
	RECEIVED,
};

/* Of a process, since time has passed for the last time without its paying for it. */
struct account {
	pid_t process;
	unsigned long long since;
	unsigned long long calls_before;	/* of all processes */
	unsigned int fruitless, questions, calls;
	unsigned long found;			/* by the last poll, if nothing was done since */
	struct task_struct *thread;		/* that made the last call */
	unsigned long sleeps;			/* its own, but for those it paid with */
	int unpaid;				/* the call for which it pays before it makes it again; -1: none */
	unsigned int since_unpaid;		/* calls */
	unsigned long long paid_ns;		/* since the process last did something */
	enum work work;
};

static struct account accounts[ACCOUNTS];

static bool receives(int syscall)
{
	return syscall == __NR_read || syscall == __NR_readv || syscall == __NR_recvfrom || syscall == __NR_recvmsg;
}

static bool reads_clock(int syscall)
{
	return syscall == __NR_clock_gettime || syscall == __NR_gettimeofday || syscall == __NR_time;
}

static enum outcome outcome_of(int syscall, unsigned long ret)
{
	if (IS_ERR_VALUE(ret) || syscall == __NR_sched_yield)
		return FRUITLESS;
	switch (syscall) {
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return ret ? FOUND : FRUITLESS;
	case __NR_read:
	case __NR_readv:
	case __NR_recvfrom:
	case __NR_recvmsg:
		/* The end of a file is one for each call. */
		return ret ? PROGRESS : ANSWERED;
	case __NR_clock_gettime:
	case __NR_epoll_ctl:
	case __NR_fcntl:
	case __NR_getpid:
	case __NR_getrusage:
	case __NR_getsockopt:
	case __NR_gettid:
	case __NR_gettimeofday:
	case __NR_ioctl:
	/* Curl has SIGPIPE ignored and handled again around each of its polls. */
	case __NR_rt_sigaction:
	case __NR_rt_sigprocmask:
	case __NR_setsockopt:
	case __NR_time:
	case __NR_times:
		return ANSWERED;
	default:
		return PROGRESS;
	}
}

/* Whether an account is this process's, and no time has passed since. */
static bool holds(const struct account *account, pid_t process)
{
	unsigned long long calls = um_guest_state->syscalls - account->calls_before;

	return account->process == process &&
	       um_guest_state->virtual_ns - account->since < LEAST_PRICE_NS + NS_A_CALL * calls;
}

static struct account *account_of(struct task_struct *task)
{
	struct account *account = &accounts[task->tgid % ACCOUNTS];

	if (!holds(account, task->tgid))
		*account = (struct account){ .process = task->tgid, .since = um_guest_state->virtual_ns,
					     .calls_before = um_guest_state->syscalls, .unpaid = -1 };
	if (account->thread != task) {
		account->thread = task;
		account->sleeps = task->nvcsw;
	}
	return account;
}

/*
 * Most readings of the clock are no calls: the vDSO counts them down from what is left of a process's questions, and then
 * makes a call.
 */
static pid_t reader;
static unsigned int readings_allowed;

static void allow_readings(pid_t process, const struct account *account)
{
	unsigned int asked = holds(account, process) ? account->questions : 0;

	reader = process;
	readings_allowed = asked < QUESTIONS ? QUESTIONS - asked : READINGS_A_CALL;
	if (holds(account, process) && account->work == RECEIVED)
		readings_allowed = 0;
	um_vdso_allow_readings(readings_allowed);
}

static void count_readings(struct account *account)
{
	unsigned int left = um_vdso_readings_left();

	/* A process may write anything there. */
	if (account->process == reader && left < readings_allowed) {
		account->questions += readings_allowed - left;
		account->work = READ_CLOCK;
		readings_allowed = left;
	}
}

/* Before another task runs. */
void um_before_switch(struct task_struct *to)
{
	struct account *account;

	current->slept_since = um_monotonic_ns();
	if (time_travel_mode != TT_MODE_INFCPU || !to->mm)
		return;
	account = &accounts[reader % ACCOUNTS];
	if (holds(account, reader))
		count_readings(account);
	allow_readings(to->tgid, &accounts[to->tgid % ACCOUNTS]);
}

/* Goes on with this process's work, after a call with this outcome. */
static void work(struct account *account, int syscall, enum outcome outcome)
{
	if (reads_clock(syscall))
		account->work = READ_CLOCK;
	else if (account->work == READ_CLOCK && outcome == FOUND)
		account->work = POLLED;
	else if (account->work == POLLED && outcome == PROGRESS && receives(syscall))
		account->work = RECEIVED;
}

/* Whether the process of this account is in a loop, after a call with this outcome. */
static bool loops(struct account *account, enum outcome outcome, unsigned long ret)
{
	struct task_struct *task = account->thread;
	/* A poll that finds more than the one before it has an answer. */
	bool again = outcome == FOUND && account->found >= ret;

	if (account->sleeps != task->nvcsw) {
		account->sleeps = task->nvcsw;
		account->calls = 0;
	}
	account->calls++;
	if (outcome == FOUND || outcome == PROGRESS)
		account->found = outcome == FOUND ? ret : 0;
	switch (outcome) {
	case PROGRESS:
		account->questions = 0;
		account->paid_ns = 0;
		return account->calls > CALLS;
	case ANSWERED:
		return ++account->questions > QUESTIONS || account->calls > CALLS;
	case FOUND:
		if (!again)
			return account->calls > CALLS;
		fallthrough;
	case FRUITLESS:
		return ++account->fruitless > FRUITLESS_CALLS || account->calls > CALLS;
	}
	return false;
}

/* A process that pays. */
struct payer {
	struct list_head list;
	struct task_struct *task;
	bool time_has_moved;
};

static LIST_HEAD(payers);

static void sleep_until_idle(unsigned long long ns, bool time_has_moved)
{
	struct payer self = { .task = current, .time_has_moved = time_has_moved };
	ktime_t timeout = ns_to_ktime(ns);
	u64 cause = current->cause;
	unsigned long flags;

	local_irq_save(flags);
	list_add_tail(&self.list, &payers);
	local_irq_restore(flags);
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout_range(&timeout, 0, HRTIMER_MODE_REL);
	local_irq_save(flags);
	list_del(&self.list);
	local_irq_restore(flags);
	current->cause = cause;
}

void um_sleep_for(unsigned long long ns)
{
	sleep_until_idle(ns, false);
}

/*
 * To be called when nobody can run, before time moves. Time moves once while a process pays: when nobody can run for the
 * second time, others have done what they had to, and it is its turn. Returns whether it is somebody's turn.
 */
int um_wake_payers(void)
{
	struct payer *payer;
	int woken = 0;

	list_for_each_entry(payer, &payers, list) {
		if (payer->time_has_moved) {
			wake_up_process(payer->task);
			woken = 1;
		}
	}
	/* Else two of them would wake each other for ever. */
	if (woken)
		return woken;
	list_for_each_entry(payer, &payers, list)
		payer->time_has_moved = true;
	return woken;
}

static void pay(struct account *account)
{
	unsigned long long before = um_guest_state->virtual_ns;

	um_sleep_for(clamp_t(unsigned long long, account->paid_ns / PRICE_SHARE, LEAST_PRICE_NS, MOST_PRICE_NS));
	/* Another process may have taken the account meanwhile, or another thread of this one made a call. */
	if (account->process != current->tgid)
		return;
	account->since = um_guest_state->virtual_ns;
	account->calls_before = um_guest_state->syscalls;
	account->paid_ns += account->since - before;
	if (account->thread == current)
		account->sleeps = current->nvcsw;
}

/* What others do meanwhile ends a sleep, but not this work. */
static void pay_for_work(struct account *account)
{
	unsigned long long until = um_guest_state->virtual_ns + LEAST_PRICE_NS;

	while (um_guest_state->virtual_ns < until && account->process == current->tgid)
		pay(account);
}

/*
 * A loop pays before it makes a call again: so it learns at once what ended its sleep, and when it has come to its end, what it
 * does next is free.
 */
void um_before_call(int syscall)
{
	struct account *account = &accounts[current->tgid % ACCOUNTS];

	if (account->process == current->tgid && account->unpaid == syscall) {
		account->unpaid = -1;
		pay(account);
	}
	if (account->process == current->tgid && account->work == RECEIVED && reads_clock(syscall)) {
		account->work = NONE;
		pay_for_work(account);
	}
	/* Time may pass in this call: readings before it are not after it. */
	if (holds(account, current->tgid))
		count_readings(account);
	um_forget_readings();
	um_guest_state->syscalls++;
	um_guest_state->syscall = syscall;
	um_guest_state->pid = current->pid;
	memcpy(um_guest_state->comm, current->comm, sizeof(um_guest_state->comm));
	/* The vDSO's clock knows of no steps. */
	if (syscall == __NR_clock_settime || syscall == __NR_settimeofday || syscall == __NR_adjtimex ||
	    syscall == __NR_clock_adjtime)
		um_vdso_stop_clock();
}

/* Returns whether it decides what calls cost. */
int um_after_call(int syscall, unsigned long ret)
{
	enum outcome outcome = outcome_of(syscall, ret);
	struct account *account;

	if (time_travel_mode != TT_MODE_INFCPU)
		return 0;
	account = account_of(current);
	count_readings(account);
	work(account, syscall, outcome);
	account->since_unpaid++;
	/* A call that it did not make again was no part of a loop. */
	if (loops(account, outcome, ret) && (account->unpaid < 0 || account->since_unpaid > FRUITLESS_CALLS)) {
		account->unpaid = syscall;
		account->since_unpaid = 0;
	}
	allow_readings(current->tgid, account);
	return 1;
}

/*
 * In the kernel too a loop may wait for another task: it calls cond_resched() until that one is done, and relies on the tick to end its
 * turn. It pays as a loop of calls does, ever more, because what it waits for may be a time.
 */
void um_let_others_run(void)
{
	static struct task_struct *last;
	static unsigned long switches;
	static unsigned long long syscalls;
	static unsigned int turns;
	static unsigned long long paid;

	if (time_travel_mode != TT_MODE_INFCPU || system_state < SYSTEM_SCHEDULING || irqs_disabled())
		return;
	if (last != current || switches != current->nvcsw + current->nivcsw || syscalls != um_guest_state->syscalls) {
		last = current;
		syscalls = um_guest_state->syscalls;
		turns = 0;
		paid = 0;
	}
	if (++turns >= TURNS && !(READ_ONCE(current->__state) & ~MAY_WAKE_EARLY)) {
		turns = 0;
		paid++;
		um_sleep_for(min_t(unsigned long long, paid * LEAST_PRICE_NS, MOST_PRICE_NS));
	}
	/* What it slept for here is part of the loop. */
	switches = current->nvcsw + current->nivcsw;
}

/* Whether other processes can write what this one reads. */
static bool shares_memory(struct mm_struct *mm)
{
	VMA_ITERATOR(areas, mm, 0);
	struct vm_area_struct *area;
	bool shares = false;

	mmap_read_lock(mm);
	for_each_vma(areas, area)
		/* But for the page of the vDSO's readings. */
		shares = shares || (area->vm_flags & (VM_SHARED | VM_PFNMAP)) == VM_SHARED;
	mmap_read_unlock(mm);
	return shares;
}

static void note_interruption(void)
{
	um_guest_state->interruptions++;
	memcpy(um_guest_state->interrupted, current->comm, sizeof(um_guest_state->interrupted));
}

/*
 * The host asks for this when a process has computed for a second of the host's time without a call: it may be waiting for
 * what another one writes to memory. So others who can run do, or time moves a little. When that happens depends on the
 * host, so that nothing is done where it cannot help.
 */
void um_interrupt_computing(void)
{
	static unsigned long long syscalls, ns;
	static unsigned int alone;

	if (time_travel_mode != TT_MODE_INFCPU || (thread_group_empty(current) && !shares_memory(current->mm)))
		return;
	if (syscalls != um_guest_state->syscalls) {
		ns = LEAST_PRICE_NS;
		alone = 0;
	}
	if (nr_running() > 1) {
		note_interruption();
		sleep_until_idle(NSEC_PER_SEC, true);
	} else if (!list_empty(&payers) || ++alone > SECONDS_ALONE) {
		note_interruption();
		um_sleep_for(ns);
		ns = min_t(unsigned long long, 10 * ns, MOST_PRICE_NS);
	}
	syscalls = um_guest_state->syscalls;
}
