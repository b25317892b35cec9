// SPDX-License-Identifier: GPL-2.0
/*
 * The path between hosts, inside the kernel.
 *
 * An open /dev/path is a path. It gets its settings, and a device for each host, in the namespace of whoever asks. What a host sends by its
 * device goes into the path at once, and what the path lets through arrives at the other device when it is due, by a timer. The path itself
 * is a library (kernel/path), which also writes down what becomes of each packet: that is what a read gets.
 *
 * Packets look to their receiver as if a process had written them to a TUN device.
 */

#include <linux/cause.h>
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/sending.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>
#include <template.h>

/* Of the library. */
struct crosswind_leaving {
	const u8 *bytes;
	size_t length;
	s64 flipped_bit;
	u64 cause;	/* a packet: linux/cause.h */
	u8 pair;
	u8 side;
	bool marked;
};

struct crosswind_events {
	u8 *bytes;
	size_t length;
	size_t capacity;
};

void *crosswind_path_new(const u8 *text, size_t length, int *problem);
void crosswind_path_free(void *path);
void crosswind_path_handle_packet(void *path, u8 pair, u8 side, u64 now, void *packet, const u8 *bytes, size_t length,
				  const struct crosswind_sending *sending);
void crosswind_path_release(void *path, u64 now);
bool crosswind_path_has_left(void *path);
bool crosswind_path_next_leaving(void *path, struct crosswind_leaving *leaving);
void crosswind_mark(u8 *bytes, size_t length);
void crosswind_path_handle_offered(void *path, u64 now, bool taken);
u64 crosswind_path_next_wakeup(void *path);
bool crosswind_path_is_empty(void *path);
void crosswind_path_end(void *path);
void crosswind_path_report(void *path, u64 now);
size_t crosswind_path_full_chunks(void *path);
bool crosswind_path_take_events(void *path, struct crosswind_events *events);
void crosswind_path_give_back_events(void *path, const struct crosswind_events *events);
size_t crosswind_largest_chunk(void);

/* For the library. */
void *crosswind_alloc(size_t size);
void crosswind_free(void *memory);
void crosswind_panic(const u8 *text, size_t length) __noreturn;
void crosswind_packet_free(void *packet);

/* What a process may ask. */
struct path_settings {
	__u64 text;
	__u64 length;
};

struct path_device {
	char name[IFNAMSIZ];
	__u8 pair;
	__u8 side;	/* 0: the client's, 1: the server's */
};

#define PATH_SETTINGS	_IOW('W', 1, struct path_settings)	/* makes the path */
#define PATH_DEVICE	_IOW('W', 2, struct path_device)	/* makes a host's device */
#define PATH_WAIT	_IO('W', 3)	/* waits until there is much to read; fails once the path has ended */
#define PATH_END	_IOW('W', 4, __u64)	/* waits until the path is empty, at most so many ns; then nothing leaves it */
#define PATH_REPORT	_IO('W', 5)	/* writes down what is left inside; nothing may be asked afterwards but reads */

enum {
	MOST_PAIRS = 256,
	MOST_SETTINGS = 1 << 30,
	/* So many full chunks are much to read. */
	MANY_CHUNKS = 4,
	/*
	 * So many packets are handed over in one go, as by a network card's driver. Then programs run, for which reading takes no time: a
	 * socket's buffer holds 92 packets of 1500 bytes where nobody has set it.
	 */
	MOST_AT_ONCE = 64,
};

/* What a TUN device leaves in front of a packet. */
#define HEADROOM NET_SKB_PAD

struct emulated_path {
	struct kref users;	/* the open file, and each device */
	spinlock_t lock;	/* of all below, and of the library */
	void *library;		/* none once the file is closed */
	struct hrtimer timer;
	struct tasklet_struct deliver;
	u64 alarm;		/* when the timer fires; U64_MAX: it does not */
	bool ending;		/* it ends once it is empty */
	bool ended;
	wait_queue_head_t wait;
	struct net_device *devices[MOST_PAIRS][2];
};

struct host {
	struct emulated_path *path;
	u8 pair;
	u8 side;
};

void *crosswind_alloc(size_t size)
{
	/* Settings may be large, and come from a process. */
	if (in_atomic() || irqs_disabled() || softirq_count())
		return kmalloc(size, GFP_ATOMIC);
	return kvmalloc(size, GFP_KERNEL);
}

void crosswind_free(void *memory)
{
	kvfree(memory);
}

void crosswind_panic(const u8 *text, size_t length)
{
	panic("the path: %.*s", (int)length, text);
}

/* Rust's own parts name it, for unwinding, which nobody does here. */
void rust_eh_personality(void);
void rust_eh_personality(void)
{
}

void crosswind_packet_free(void *packet)
{
	consume_skb(packet);
}

static void path_release(struct kref *users)
{
	kvfree(container_of(users, struct emulated_path, users));
}

/* As a TUN device makes it. */
static struct sk_buff *packet_of(const struct crosswind_leaving *leaving)
{
	size_t linear = HEADROOM + leaving->length < PAGE_SIZE ? leaving->length : 0;
	struct sk_buff *packet;
	int error;

	packet = alloc_skb_with_frags(HEADROOM + linear, leaving->length - linear, PAGE_ALLOC_COSTLY_ORDER, &error, GFP_ATOMIC);
	if (!packet)
		return NULL;
	skb_reserve(packet, HEADROOM);
	skb_put(packet, linear);
	packet->data_len = leaving->length - linear;
	packet->len += packet->data_len;
	if (leaving->marked || leaving->flipped_bit >= 0) {
		u8 *bytes = kmemdup(leaving->bytes, leaving->length, GFP_ATOMIC);

		if (!bytes) {
			kfree_skb(packet);
			return NULL;
		}
		if (leaving->marked)
			crosswind_mark(bytes, leaving->length);
		if (leaving->flipped_bit >= 0 && leaving->flipped_bit / 8 < leaving->length)
			bytes[leaving->flipped_bit / 8] ^= 0x80 >> (leaving->flipped_bit % 8);
		skb_store_bits(packet, 0, bytes, leaving->length);
		kfree(bytes);
	} else {
		skb_store_bits(packet, 0, leaving->bytes, leaving->length);
	}
	return packet;
}

/* With the lock. The last packet inside ends the path: its receiver's answer stays in it. */
static void end_if_empty(struct emulated_path *path)
{
	if (!path->ended && crosswind_path_is_empty(path->library)) {
		path->ended = true;
		crosswind_path_end(path->library);
		wake_up(&path->wait);
	}
}

/* What is to be handed to a host, which gets it outside of the lock: it may answer at once. */
static struct sk_buff *take_leaving(struct emulated_path *path)
{
	struct crosswind_leaving leaving;
	struct net_device *device;
	struct sk_buff *packet = NULL;

	if (!path->library || !crosswind_path_next_leaving(path->library, &leaving))
		return NULL;
	device = path->devices[leaving.pair][!leaving.side];
	if (device && device->flags & IFF_UP)
		packet = packet_of(&leaving);
	if (packet) {
		switch (leaving.length ? leaving.bytes[0] >> 4 : 0) {
		case 4:
			packet->protocol = htons(ETH_P_IP);
			break;
		case 6:
			packet->protocol = htons(ETH_P_IPV6);
			break;
		}
		packet->dev = device;
		packet->cause = leaving.cause;
		skb_reset_mac_header(packet);
		skb_reset_network_header(packet);
		dev_sw_netstats_rx_add(device, leaving.length);
	} else if (device) {
		dev_core_stats_rx_dropped_inc(device);
	}
	crosswind_path_handle_offered(path->library, um_monotonic_ns(), packet);
	if (path->ending)
		end_if_empty(path);
	/* Without a host there is nobody to take it, but there may be more for others. */
	return packet ?: ERR_PTR(-EIO);
}

/* To be called with the lock. */
static void set_alarm_at(struct emulated_path *path, u64 next)
{
	/* One that is too early costs less than setting it again. */
	if (next >= path->alarm)
		return;
	path->alarm = next;
	hrtimer_start(&path->timer, ns_to_ktime(next), HRTIMER_MODE_ABS_SOFT);
}

/* The same, after whatever may have changed when the next packet is due. */
static void set_alarm(struct emulated_path *path)
{
	set_alarm_at(path, crosswind_path_next_wakeup(path->library));
}

/* Hands over what has left the path. No lock of the network may be held. */
static void deliver(struct emulated_path *path)
{
	u64 before = cause_of_interrupt;
	struct sk_buff *packet;
	int left = MOST_AT_ONCE;

	spin_lock_bh(&path->lock);
	while (left-- > 0 && (packet = take_leaving(path))) {
		if (IS_ERR(packet))
			continue;
		spin_unlock_bh(&path->lock);
		skb_probe_transport_header(packet);
		cause_of_interrupt = packet->cause;
		netif_receive_skb(packet);
		cause_of_interrupt = before;
		spin_lock_bh(&path->lock);
	}
	if (path->library && crosswind_path_has_left(path->library))
		set_alarm_at(path, um_monotonic_ns() + 1);
	if (path->library && crosswind_path_full_chunks(path->library) >= MANY_CHUNKS)
		wake_up(&path->wait);
	spin_unlock_bh(&path->lock);
}

static void deliver_soon(struct tasklet_struct *tasklet)
{
	deliver(container_of(tasklet, struct emulated_path, deliver));
}

static enum hrtimer_restart alarm_rings(struct hrtimer *timer)
{
	struct emulated_path *path = container_of(timer, struct emulated_path, timer);

	spin_lock_bh(&path->lock);
	path->alarm = U64_MAX;
	if (path->library && !path->ended) {
		crosswind_path_release(path->library, um_monotonic_ns());
		set_alarm(path);
	}
	spin_unlock_bh(&path->lock);
	deliver(path);
	return HRTIMER_NORESTART;
}

static netdev_tx_t host_xmit(struct sk_buff *packet, struct net_device *device)
{
	struct host *host = netdev_priv(device);
	struct emulated_path *path = host->path;
	struct crosswind_sending sending = sending_of(packet);

	if (skb_linearize(packet)) {
		dev_core_stats_tx_dropped_inc(device);
		kfree_skb(packet);
		return NETDEV_TX_OK;
	}
	skb_tx_timestamp(packet);
	skb_orphan(packet);
	nf_reset_ct(packet);
	spin_lock_bh(&path->lock);
	if (path->library) {
		dev_sw_netstats_tx_add(device, 1, packet->len);
		crosswind_path_handle_packet(path->library, host->pair, host->side, um_monotonic_ns(), packet, packet->data, packet->len,
					     &sending);
		/* The sender may hold locks of the network. */
		if (crosswind_path_has_left(path->library))
			tasklet_schedule(&path->deliver);
		set_alarm(path);
		packet = NULL;
	}
	spin_unlock_bh(&path->lock);
	if (packet) {
		dev_core_stats_tx_dropped_inc(device);
		kfree_skb(packet);
	}
	return NETDEV_TX_OK;
}

static int host_init(struct net_device *device)
{
	struct host *host = netdev_priv(device);

	kref_get(&host->path->users);
	return 0;
}

static void host_uninit(struct net_device *device)
{
	struct host *host = netdev_priv(device);

	spin_lock_bh(&host->path->lock);
	if (host->path->devices[host->pair][host->side] == device)
		host->path->devices[host->pair][host->side] = NULL;
	spin_unlock_bh(&host->path->lock);
}

static void host_free(struct net_device *device)
{
	struct host *host = netdev_priv(device);

	kref_put(&host->path->users, path_release);
}

static const struct net_device_ops host_operations = {
	.ndo_init	= host_init,
	.ndo_uninit	= host_uninit,
	.ndo_start_xmit	= host_xmit,
	.ndo_get_stats64 = dev_get_tstats64,
};

static void host_setup(struct net_device *device)
{
	device->netdev_ops = &host_operations;
	device->type = ARPHRD_NONE;
	device->flags = IFF_POINTOPOINT | IFF_NOARP | IFF_MULTICAST;
	device->mtu = ETH_DATA_LEN;
	device->min_mtu = ETH_MIN_MTU;
	device->max_mtu = ETH_MAX_MTU;
	device->hw_features = NETIF_F_SG | NETIF_F_FRAGLIST;
	device->features = device->hw_features;
	device->lltx = true;
	device->needs_free_netdev = true;
	device->priv_destructor = host_free;
	device->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
}

/* Nobody makes a device without a path. */
static int host_validate(struct nlattr *attributes[], struct nlattr *data[], struct netlink_ext_ack *answer)
{
	NL_SET_ERR_MSG(answer, "such a device is made by /dev/path");
	return -EOPNOTSUPP;
}

static struct rtnl_link_ops host_link __read_mostly = {
	.kind		= "path",
	.priv_size	= sizeof(struct host),
	.setup		= host_setup,
	.validate	= host_validate,
};

static long make_device(struct emulated_path *path, const struct path_device __user *from)
{
	struct path_device asked;
	struct net_device *device;
	struct host *host;
	int error;

	if (copy_from_user(&asked, from, sizeof(asked)))
		return -EFAULT;
	asked.name[IFNAMSIZ - 1] = 0;
	if (asked.side > 1 || !dev_valid_name(asked.name))
		return -EINVAL;
	device = alloc_netdev(sizeof(*host), asked.name, NET_NAME_USER, host_setup);
	if (!device)
		return -ENOMEM;
	dev_net_set(device, current->nsproxy->net_ns);
	device->rtnl_link_ops = &host_link;
	host = netdev_priv(device);
	*host = (struct host){ .path = path, .pair = asked.pair, .side = asked.side };
	rtnl_lock();
	error = path->devices[asked.pair][asked.side] ? -EEXIST : register_netdevice(device);
	if (!error)
		path->devices[asked.pair][asked.side] = device;
	rtnl_unlock();
	if (error)
		free_netdev(device);
	return error;
}

static long make_path(struct emulated_path *path, const struct path_settings __user *from)
{
	struct path_settings asked;
	int problem = 0;
	void *library;
	u8 *text;

	if (copy_from_user(&asked, from, sizeof(asked)))
		return -EFAULT;
	if (asked.length > MOST_SETTINGS)
		return -E2BIG;
	text = vmemdup_user((void __user *)(unsigned long)asked.text, asked.length);
	if (IS_ERR(text))
		return PTR_ERR(text);
	library = crosswind_path_new(text, asked.length, &problem);
	kvfree(text);
	if (!library)
		return problem == 1 ? -ESTALE : -EINVAL;
	spin_lock_bh(&path->lock);
	if (!path->library)
		swap(path->library, library);
	spin_unlock_bh(&path->lock);
	if (library) {
		crosswind_path_free(library);
		return -EBUSY;
	}
	return 0;
}

static bool has_much(struct emulated_path *path)
{
	bool much;

	spin_lock_bh(&path->lock);
	much = crosswind_path_full_chunks(path->library) >= MANY_CHUNKS;
	spin_unlock_bh(&path->lock);
	return much;
}

static long wait_for_much(struct emulated_path *path)
{
	int error = wait_event_interruptible(path->wait, path->ended || has_much(path));

	return error ?: path->ended ? -ESHUTDOWN : 0;
}

static long end_path(struct emulated_path *path, const u64 __user *from)
{
	u64 limit;

	if (get_user(limit, from))
		return -EFAULT;
	spin_lock_bh(&path->lock);
	path->ending = true;
	end_if_empty(path);
	spin_unlock_bh(&path->lock);
	/* It ends even if there still is something inside. */
	wait_event_hrtimeout(path->wait, path->ended, ns_to_ktime(limit));
	spin_lock_bh(&path->lock);
	path->ended = true;
	crosswind_path_end(path->library);
	spin_unlock_bh(&path->lock);
	wake_up(&path->wait);
	return 0;
}

static long path_ioctl(struct file *file, unsigned int request, unsigned long argument)
{
	struct emulated_path *path = file->private_data;
	void __user *from = (void __user *)argument;

	switch (request) {
	case PATH_SETTINGS:
		return make_path(path, from);
	case PATH_DEVICE:
		return make_device(path, from);
	}
	if (!path->library)
		return -ENODEV;
	switch (request) {
	case PATH_WAIT:
		return wait_for_much(path);
	case PATH_END:
		return end_path(path, from);
	case PATH_REPORT:
		spin_lock_bh(&path->lock);
		crosswind_path_report(path->library, um_monotonic_ns());
		spin_unlock_bh(&path->lock);
		return 0;
	}
	return -ENOTTY;
}

/* All events that there are and that fit, in whole pieces; nothing where there is none. */
static ssize_t path_read(struct file *file, char __user *to, size_t size, loff_t *offset)
{
	struct emulated_path *path = file->private_data;
	struct crosswind_events events;
	ssize_t done = 0;
	bool any;

	if (!path->library)
		return -ENODEV;
	if (size < crosswind_largest_chunk())
		return -EINVAL;
	while (size - done >= crosswind_largest_chunk()) {
		spin_lock_bh(&path->lock);
		any = crosswind_path_take_events(path->library, &events);
		spin_unlock_bh(&path->lock);
		if (!any)
			break;
		if (copy_to_user(to + done, events.bytes, events.length))
			done = -EFAULT;
		else
			done += events.length;
		spin_lock_bh(&path->lock);
		crosswind_path_give_back_events(path->library, &events);
		spin_unlock_bh(&path->lock);
		if (done < 0)
			break;
	}
	return done;
}

static int path_open(struct inode *inode, struct file *file)
{
	struct emulated_path *path = kvzalloc(sizeof(*path), GFP_KERNEL);

	if (!path)
		return -ENOMEM;
	kref_init(&path->users);
	spin_lock_init(&path->lock);
	init_waitqueue_head(&path->wait);
	tasklet_setup(&path->deliver, deliver_soon);
	hrtimer_init(&path->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	path->timer.function = alarm_rings;
	path->alarm = U64_MAX;
	file->private_data = path;
	return nonseekable_open(inode, file);
}

static int path_close(struct inode *inode, struct file *file)
{
	struct emulated_path *path = file->private_data;
	void *library;

	spin_lock_bh(&path->lock);
	library = path->library;
	path->library = NULL;
	spin_unlock_bh(&path->lock);
	hrtimer_cancel(&path->timer);
	tasklet_kill(&path->deliver);
	if (library)
		crosswind_path_free(library);
	kref_put(&path->users, path_release);
	return 0;
}

static const struct file_operations path_operations = {
	.owner		= THIS_MODULE,
	.open		= path_open,
	.release	= path_close,
	.read		= path_read,
	.unlocked_ioctl	= path_ioctl,
};

static struct miscdevice path_device = {
	.minor	= 242,
	.name	= "path",
	.fops	= &path_operations,
};

static int __init path_init(void)
{
	return misc_register(&path_device) ?: rtnl_link_register(&host_link);
}
late_initcall(path_init);
