// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel that is booted once and copied for each guest.
 *
 * With template=<fd> on its command line the kernel stops when it is booted, before it starts a process, and when age=<seconds>
 * have passed, and takes requests from the socket <fd>. Each request makes a copy of the whole kernel, which goes on as a guest. All copies start
 * in the same state at the same virtual time, so that what one does depends on its request alone.
 *
 * A request is text, a setting a line (seed=<number>, writable=<directory of the host>, cpu=<number>), with four open
 * files: what /dev/cell reads, what it writes, where messages of the kernel and /dev/cell-errors go, and a file of 4096
 * bytes for struct um_guest_state.
 */

#include <linux/elf.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <mem_user.h>
#include <mem.h>
#include <os.h>
#include <template.h>

static struct um_guest_state nobody;
struct um_guest_state *um_guest_state = &nobody;

static int template_socket = -1;

/* The host's file that each device stands for. */
enum { HOST_INPUT = 0, HOST_OUTPUT = 1, HOST_ERRORS = 2 };

static int __init template_setup(char *text)
{
	return kstrtoint(text, 10, &template_socket) == 0;
}
__setup("template=", template_setup);

static unsigned int template_age;

static int __init age_setup(char *text)
{
	return kstrtouint(text, 10, &template_age) == 0;
}
__setup("age=", age_setup);

static ssize_t cell_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	void *page;
	int got;

	size = min_t(size_t, size, PAGE_SIZE);
	page = (void *)__get_free_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	/* The whole guest waits, and its clock with it. */
	got = os_read_file(HOST_INPUT, page, size);
	if (got > 0 && copy_to_user(to, page, got))
		got = -EFAULT;
	free_page((unsigned long)page);
	return got;
}

static ssize_t write_to(int host_file, const char __user *from, size_t size)
{
	void *page;
	int done = 0, wrote;

	size = min_t(size_t, size, PAGE_SIZE);
	page = (void *)__get_free_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	if (copy_from_user(page, from, size)) {
		done = -EFAULT;
		goto out;
	}
	while (done < size) {
		wrote = os_write_file(host_file, page + done, size - done);
		if (wrote < 0) {
			done = done ?: wrote;
			break;
		}
		done += wrote;
	}
out:
	free_page((unsigned long)page);
	return done;
}

static ssize_t cell_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	return write_to(HOST_OUTPUT, from, size);
}

static ssize_t errors_write(struct file *file, const char __user *from, size_t size, loff_t *offset)
{
	return write_to(HOST_ERRORS, from, size);
}

static const struct file_operations cell_operations = {
	.owner	= THIS_MODULE,
	.read	= cell_read,
	.write	= cell_write,
};

static const struct file_operations errors_operations = {
	.owner	= THIS_MODULE,
	.write	= errors_write,
};

static struct miscdevice cell_device = {
	.minor	= 240,
	.name	= "cell",
	.fops	= &cell_operations,
};

static struct miscdevice errors_device = {
	.minor	= 241,
	.name	= "cell-errors",
	.fops	= &errors_operations,
};

static void take(char *setting)
{
	unsigned long long seed;

	if (strncmp(setting, "seed=", 5) == 0 && kstrtoull(setting + 5, 10, &seed) == 0) {
		os_seed_random(seed);
		random_start_over();
	} else if (strncmp(setting, "writable=", 9) == 0) {
		strscpy(um_hostfs_writable, setting + 9, TEMPLATE_REQUEST_SIZE);
	}
}

/*
 * A kernel that has just booted differs from all that one meets: its timers are coarse until the first tick, and programs
 * take a clock that has not reached its first second for one that was never read (ping).
 */
static void grow_old(void)
{
	ktime_t until = ktime_set(template_age, 0);

	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout_range(&until, 0, HRTIMER_MODE_ABS);
}

static int __init template_devices(void)
{
	if (misc_register(&cell_device) || misc_register(&errors_device))
		panic("cannot register /dev/cell");
	return 0;
}
late_initcall_sync(template_devices);

/* A program with more than this is kept in part: copies of the template would take longer than reading the rest again. */
enum { KEPT_AT_MOST = 32 << 20 };

/*
 * Reads what guests will execute into memory, once for all of them, and keeps the file open, since hostfs forgets what
 * nobody has open.
 */
static void keep_in_memory(const char *program)
{
	struct elfhdr header;
	struct elf_phdr part;
	struct file *file = filp_open(program, O_RDONLY | O_LARGEFILE, 0);
	void *page = (void *)__get_free_page(GFP_KERNEL);
	loff_t at = 0, end;
	int i;

	if (IS_ERR(file) || !page || kernel_read(file, &header, sizeof(header), &at) != sizeof(header))
		return;
	for (i = 0; i < header.e_phnum; i++) {
		at = header.e_phoff + i * sizeof(part);
		if (kernel_read(file, &part, sizeof(part), &at) != sizeof(part) || part.p_type != PT_LOAD)
			continue;
		end = min_t(loff_t, part.p_offset + part.p_filesz, KEPT_AT_MOST);
		for (at = part.p_offset; at < end && kernel_read(file, page, PAGE_SIZE, &at) > 0; )
			;
	}
	free_page((unsigned long)page);
}

/* Called by the first process, with the root file system and before it executes its program. */
void template_serve(const char *program)
{
	static char request[TEMPLATE_REQUEST_SIZE];
	unsigned long long offset;
	char *rest = request, *setting;

	if (template_socket < 0)
		return;
	if (program)
		keep_in_memory(program);
	/* After all that takes time, so that guests start where a tick is. */
	if (template_age)
		grow_old();
	if (os_template_serve(template_socket, phys_mapping(0, &offset), request, sizeof(request)) < 0)
		panic("cannot serve as a template");
	while ((setting = strsep(&rest, "\n")))
		take(setting);
	um_vdso_start_clock();
	um_guest_state->can_interrupt = 1;
}
