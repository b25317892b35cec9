/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A booted kernel that copies itself: see arch/um/kernel/template.c.
 */
#ifndef __UM_TEMPLATE_H
#define __UM_TEMPLATE_H

#define TEMPLATE_REQUEST_SIZE 8192

/* What the host may read of a guest at any time. The file that a request passes holds one of these, and is 4096 bytes. */
struct um_guest_state {
	unsigned long long virtual_ns;	/* since the kernel's start */
	unsigned long long syscalls;	/* of all processes */
	int pid;			/* of the process that made the last one */
	int syscall;			/* its number */
	char comm[16];
	unsigned long long interruptions;	/* of threads that computed: when depends on the host */
	char interrupted[16];		/* the last one's name */
	int can_interrupt;		/* whether the host may ask for it */
};

/* Always there, so that nobody has to ask; nobody reads it before a request has passed a file. */
extern struct um_guest_state *um_guest_state;

/* arch/um/kernel/template.c */
void template_serve(const char *program);

/* os-Linux/template.c */
int os_template_serve(int socket, int memory, char *request, int size);
void os_seed_random(unsigned long long seed);

/* drivers/char/random.c */
void random_start_over(void);

/* arch/x86/um/vdso/vma.c */
void um_vdso_set_time(unsigned long long ns);
void um_vdso_start_clock(void);
void um_vdso_stop_clock(void);
unsigned long long um_monotonic_ns(void);
unsigned int um_vdso_readings_left(void);
void um_vdso_allow_readings(unsigned int count);

/* arch/um/kernel/price.c: what calls cost. */
void um_before_call(int syscall);
int um_after_call(int syscall, unsigned long ret);
struct task_struct;
void um_before_switch(struct task_struct *to);
int um_wake_payers(void);
void um_let_others_run(void);
void um_interrupt_computing(void);
void um_sleep_for(unsigned long long ns);

/* arch/um/kernel/processor.c */
struct uml_pt_regs;
int um_asks_processor(struct uml_pt_regs *regs);
void um_answer_for_processor(struct uml_pt_regs *regs, int length);
void um_forget_readings(void);

/* fs/hostfs: the one directory of the host that may be mounted for writing. */
extern char um_hostfs_writable[];

#endif
