//! Unanswered flows. They last longer than their packets: something waited for the answer.

use crate::DelayCause;
use crate::critical_path::{Interval, PacketId, Place};
use crate::flow::{Beginning, Flow, Waits};
use crate::udp::is_lost;
use crosswind_ledger::{PacketRecord, TCP_SYN, UDP};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;

/// How long the first SYN waits for its answer (RFC 6298, section 2.1).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

impl Waits {
    /// The final wait of a flow of `packets`, in the order of entering.
    pub fn of(protocol: u8, beginning: Beginning, packets: &[&PacketRecord]) -> Option<Self> {
        let opened = packets.first()?.side;
        let own = || packets.iter().filter(|it| it.side == opened && it.copy == 0);
        match beginning {
            Beginning::Unanswered => {
                let syns: Vec<_> = own().filter(|it| it.headers.flags & TCP_SYN != 0).collect();
                let [.., last] = syns[..] else { return None };
                let waited = syns.iter().rev().nth(1).map_or(FIRST_TIMEOUT, |it| last.entered - it.entered);
                // Each timeout is twice as long as the one before it, or as long, and timers are up to an eighth late.
                let longest = waited + waited;
                let until = last.entered + longest + Duration::from_nanos(longest.as_nanos() / 8);
                Some(Self::Syn { until, last: PacketId::from(*last) })
            }
            Beginning::Datagram if protocol == UDP => {
                let answered = packets.iter().any(|it| it.side != opened && it.left.is_some());
                let last = own().next_back()?;
                let lost = own().any(|it| is_lost(it)) || packets.iter().any(|it| it.side != opened);
                (lost && !answered).then(|| Self::Datagram { last: PacketId::from(*last) })
            }
            _ => None,
        }
    }
}

/// Lets flows last until the end of their waits for answers, as far as known: `flows` are in the order of their
/// beginnings; programs ended at `end`.
pub fn extend(flows: &mut [Flow], packets: &[PacketRecord], end: Instant) {
    if flows.iter().all(|it| it.waits.is_none()) {
        return;
    }
    let entered = Side::BOTH.map(|side| {
        let mut entered: Vec<_> = packets.iter().filter(|it| it.side == side).map(|it| it.entered).collect();
        entered.sort_unstable();
        entered
    });
    let mut questions: HashMap<_, Vec<Instant>> = HashMap::new();
    for flow in flows.iter().filter(|it| it.protocol == UDP) {
        questions.entry(flow.question()).or_default().push(flow.from);
    }
    for flow in flows {
        let (ends, part, last) = match flow.waits {
            // Its host's next packet ends the wait at the latest.
            Some(Waits::Syn { until, last }) => {
                let entered = &entered[flow.opened as usize];
                let next = entered.get(entered.partition_point(|&at| at <= flow.to)).copied();
                (until.min(end).min(next.unwrap_or(end)), DelayCause::SynTimer, last)
            }
            // The same question, from another port.
            Some(Waits::Datagram { last }) => {
                let asked = &questions[&flow.question()];
                let Some(&next) = asked.get(asked.partition_point(|&at| at <= flow.to)) else { continue };
                (next, DelayCause::DatagramLoss, last)
            }
            None => continue,
        };
        flow.wait(ends, part, last);
    }
}

impl Flow {
    /// Flows with the same value count as the same question: same host, same port, same size.
    fn question(&self) -> (Side, u16, u64) {
        let server = if self.opened == Side::Forward { self.server_port } else { self.client_port };
        let sent = self.sent[self.opened as usize];
        (self.opened, server, sent.bytes / sent.packets.max(1))
    }

    /// Adds a wait for the answer to its packet `last`.
    fn wait(&mut self, until: Instant, part: DelayCause, last: PacketId) {
        if until <= self.to {
            return;
        }
        let (from, data) = (self.to, self.opened);
        self.spent[data as usize][part as usize] += until - from;
        self.to = until;
        // With very many intervals the last ones are not kept.
        if self.pieces.last().map_or(self.from, |it| it.to) != from {
            return;
        }
        if let Some(before) = self.pieces.last_mut().filter(|it| it.part == part) {
            before.to = until;
        } else {
            let place = Place::sender(data);
            self.pieces.push(Interval { from, to: until, part, place, packet: Some(last), count: 0, data });
        }
    }
}
