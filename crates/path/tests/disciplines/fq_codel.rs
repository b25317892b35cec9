//! RFC 8290, section 4: enqueue with its drop from the fattest queue, and dequeue's deficit round robin.

use super::codel::{Vars, dequeue};
use super::*;
use std::collections::VecDeque;

struct Flow {
    packets: VecDeque<Pkt>,
    credits: i64,
    vars: Vars,
}

struct Queues {
    flows: Vec<Flow>,
    new: Vec<usize>,
    old: Vec<usize>,
    limit: usize,
    quantum: i64,
    seed: Seed,
}

fn bytes(packets: &VecDeque<Pkt>) -> u64 {
    packets.iter().map(|pkt| pkt.size).sum()
}

impl Reference for Queues {
    fn enqueue(&mut self, pkt: Pkt, now: u64, drops: &mut Drops) {
        let hash = u128::from(self.seed.word(pkt.flow.into())) * self.flows.len() as u128;
        let number = (hash >> 64) as usize;
        self.flows[number].packets.push_back(pkt);
        if !self.new.contains(&number) && !self.old.contains(&number) {
            self.new.push(number);
            self.flows[number].credits = self.quantum;
        }
        if self.flows.iter().map(|flow| flow.packets.len()).sum::<usize>() > self.limit {
            let most = self.flows.iter().map(|flow| bytes(&flow.packets)).max().unwrap();
            let fattest = self.flows.iter_mut().find(|flow| bytes(&flow.packets) == most).unwrap();
            // Up to 64 packets, until half its bytes are gone.
            let mut dropped = 0;
            for _ in 0..64 {
                let pkt = fattest.packets.pop_front().unwrap();
                dropped += pkt.size;
                fattest.vars.count += 1;
                drops.push((pkt, now));
                if dropped >= most / 2 {
                    break;
                }
            }
        }
    }

    fn dequeue(&mut self, now: u64, drops: &mut Drops) -> Option<Pkt> {
        loop {
            let from_new = !self.new.is_empty();
            let number = *self.new.first().or(self.old.first())?;
            if self.flows[number].credits <= 0 {
                self.flows[number].credits += self.quantum;
                if from_new {
                    self.new.remove(0)
                } else {
                    self.old.remove(0)
                };
                self.old.push(number);
                continue;
            }
            let others: u64 =
                (0..self.flows.len()).filter(|i| *i != number).map(|i| bytes(&self.flows[i].packets)).sum();
            let Flow { packets, vars, .. } = &mut self.flows[number];
            let mut take = || (packets.pop_front(), others + bytes(packets));
            match dequeue(vars, (5 * MS, 100 * MS, true), now, drops, &mut take) {
                Some(pkt) => {
                    self.flows[number].credits -= pkt.size as i64;
                    return Some(pkt);
                }
                None if from_new => {
                    self.new.remove(0);
                    if !self.old.is_empty() {
                        self.old.push(number);
                    }
                }
                None => {
                    self.old.remove(0);
                }
            }
        }
    }
}

fn reference(seed: u64, flows: usize, limit: usize, quantum: i64) -> Queues {
    let flow = || Flow { packets: VecDeque::new(), credits: 0, vars: Vars::default() };
    let flows = (0..flows).map(|_| flow()).collect();
    Queues { flows, new: Vec::new(), old: Vec::new(), limit, quantum, seed: link_seed(seed) }
}

#[test]
fn defaults_drop_and_mark_what_the_rfc_does() {
    let mut defaults = reference(1, 1024, 10_240, 1514);
    let (dropped, marked) =
        assert_same(&json!({"discipline": "fq_codel"}), 1, &arrivals(1, &HEAVY, &MIXED), &mut defaults);
    assert!(dropped > 100 && marked > 100, "{dropped} dropped, {marked} marked");
}

#[test]
fn a_flow_that_begins_goes_before_those_that_fill_the_link() {
    let fat = |index| (0, Pkt { index, size: 1500, flow: 1, ecn: Ecn::NotCapable, enqueued: 0 });
    let mut packets: Vec<_> = (0..50).map(fat).collect();
    packets.push((10 * MS, Pkt { index: 50, size: 100, flow: 2, ecn: Ecn::NotCapable, enqueued: 0 }));
    let ends = emulate(&json!({"discipline": "fq_codel"}), 1, &packets);
    // The seventh packet is on the wire until 10.5 ms; 100 bytes follow it at once.
    assert_eq!(ends[&50], (10_600_000, true, Ecn::NotCapable));
}

proptest! {
    #[test]
    fn any_load_is_dropped_and_marked_as_by_the_rfc(
        (seed, phases) in loads(), flows in 1_u64..12, limit in 1_u64..300, quantum in 256_u64..4000,
    ) {
        let settings = json!({
            "discipline": "fq_codel", "queue": {"packets": limit}, "queue_flows": flows, "queue_quantum_bytes": quantum,
        });
        // A queue for less than one packet is none: the last waiting packet is not dropped.
        prop_assume!(limit > 1);
        let mut reference = reference(seed, flows as usize, limit as usize, quantum as i64);
        assert_same(&settings, seed, &arrivals(seed, &phases, &MIXED), &mut reference);
    }
}
