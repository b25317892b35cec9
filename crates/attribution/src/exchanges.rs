//! Exchanges known only by beginning and end, as third-party programs': the wire's events between the two.

use crate::Hosts;
use crate::conversations::{Conversation, ProgramFacts, each_conversation};
use crate::critical_path::{CriticalPath, Interval};
use crate::links::Links;
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// A packet table's conversations, each with its client's port.
pub struct Exchanges<'a> {
    hosts: Hosts,
    /// How early a client's timestamp may be, at most.
    early: Duration,
    all: Vec<(u16, Conversation<'a>)>,
}

impl<'a> Exchanges<'a> {
    pub fn new(packets: &'a [PacketRecord], facts: &'a ProgramFacts, hosts: Hosts, early: Duration) -> Self {
        let mut all = Vec::new();
        each_conversation(packets, facts, hosts, |(_, port, _), conversation| all.push((port, conversation)));
        Self { hosts, early, all }
    }

    /// An exchange's intervals, for a client with its answer at `to`, on the connection from a port, if known. Unknown
    /// if several connections may have brought it.
    pub fn pieces(&self, port: Option<u16>, from: Instant, to: Instant, links: &Links<'a>) -> Vec<Interval> {
        // A clock with steps may show an answer before it came.
        let by = to + self.early;
        let of_port = self.all.iter().filter(|it| port.is_none_or(|port| port == it.0));
        let mut answers: Vec<_> =
            of_port.filter_map(|(_, it)| Some((it.last_answer(by).filter(|&at| at >= from)?, it))).collect();
        answers.sort_by_key(|it| it.0);
        let is_prompt = |at: Instant| to.saturating_since(at) <= self.hosts.promptness;
        match answers.as_slice() {
            [(at, only)] => only.exchange(from, to, *at, links),
            [.., (before, _), (last, it)] if is_prompt(*last) && !is_prompt(*before) => {
                it.exchange(from, to, *last, links)
            }
            _ => CriticalPath::new(from, to, Side::Forward).finish(),
        }
    }
}
