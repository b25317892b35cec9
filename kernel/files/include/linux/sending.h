/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel knows of a packet that a host sends, for whoever emulates the path: crates/packet/src/sending.rs has the same struct. */
#ifndef _LINUX_SENDING_H
#define _LINUX_SENDING_H

#include <linux/cause.h>
#include <linux/skbuff.h>

/* All 0, but for its last two, for other packets than TCP's. */
struct crosswind_sending {
	u64 held_since;
	u64 written_first;
	u64 written_last;
	u8 held_by;
	u8 triggered_by;
	u64 cause;
	struct cause_timer timer;
};

static inline struct crosswind_sending sending_of(const struct sk_buff *packet)
{
	u64 cause = packet->cause ?: cause_now();

	return (struct crosswind_sending){
		.held_since = packet->held_since,
		.written_first = packet->written_first,
		.written_last = packet->written_last,
		.held_by = packet->held_by,
		.triggered_by = packet->triggered_by,
		.cause = cause,
		.timer = cause_timer(cause),
	};
}

#endif
