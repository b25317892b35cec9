/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why TCP sent a segment when it did, kept in the segment for the emulated path (arch/um/kernel/path.c).
 */
#ifndef _NET_TCP_HOLD_H
#define _NET_TCP_HOLD_H

/* Reading the kernel's own clock moves it by 1 ns; this does not. */
unsigned long long um_monotonic_ns(void);

/* What kept the head of the queue from being sent. The numbers are those of crates/packet/src/sending.rs. */
enum tcp_hold_reason {
	TCP_HOLD_NONE,
	TCP_HOLD_RECEIVE_WINDOW,
	TCP_HOLD_CONGESTION_WINDOW,
	TCP_HOLD_NAGLE,
	TCP_HOLD_CORK,		/* asked for by the program: TCP_CORK, MSG_MORE */
	TCP_HOLD_PACING,
	TCP_HOLD_SMALL_QUEUE,	/* TCP small queues, and automatic corking, which waits for them */
	TCP_HOLD_TSO_DEFERRAL,
	TCP_HOLD_MTU_PROBE,
	TCP_HOLD_FAILED,
	TCP_HOLD_SEND_BUFFER,	/* the program had more, and there was no room */
};

/* What made the host act. */
enum tcp_trigger {
	TCP_BY_OTHER,
	TCP_BY_WRITE,
	TCP_BY_READ,
	TCP_BY_CLOSE,
	TCP_BY_PACKET,
	TCP_BY_RETRANSMISSION_TIMER,
	TCP_BY_LOSS_PROBE_TIMER,
	TCP_BY_REORDERING_TIMER,
	TCP_BY_PERSIST_TIMER,
	TCP_BY_KEEPALIVE_TIMER,
	TCP_BY_DELAYED_ACK_TIMER,
	TCP_BY_COMPRESSED_ACK_TIMER,
	TCP_BY_PACING_TIMER,
	TCP_BY_SMALL_QUEUE,
};

/* Acknowledgements that come at one instant open and close windows in turn: what held for no longer than this has held nothing back. */
enum { TCP_HOLD_INSTANT_NS = 2000 };

struct tcp_hold {
	u64	since;
	u64	before_since;	/* of the last reason that lasted */
	u64	before_until;
	u8	reason;
	u8	before;
};

static inline void tcp_note_hold(struct tcp_hold *hold, u8 reason, u64 now)
{
	if (hold->reason == reason)
		return;
	if (now - hold->since > TCP_HOLD_INSTANT_NS) {
		hold->before = hold->reason;
		hold->before_since = hold->since;
		hold->before_until = now;
	}
	hold->since = now;
	hold->reason = reason;
}

/* The reason for which the head has waited until now, and since when. */
static inline u8 tcp_held_by(const struct tcp_hold *hold, u64 now, u64 *since)
{
	bool lasts = now - hold->since > TCP_HOLD_INSTANT_NS;

	if (!lasts && hold->reason && hold->before && now - hold->before_until <= TCP_HOLD_INSTANT_NS) {
		*since = hold->before_since;
		return hold->before;
	}
	*since = hold->since;
	return hold->reason;
}

#endif
