//! RFC 9332, appendix A: the pseudocode of enqueue, dequeue with overload protection, and the PI controller. Choices
//! left open are Linux's: weights of 10 and 90 by credit, the longer delay of the two queues, a step of 1 ms.

use super::*;
use std::collections::VecDeque;

struct Queues {
    lq: VecDeque<Pkt>,
    cq: VecDeque<Pkt>,
    limit: usize,
    target: u64,
    tupdate: u64,
    k: f64,
    seed: Seed,
    updates: u64,
    p: f64,
    prevq: u64,
    credit: i64,
}

impl Queues {
    fn update_until(&mut self, now: u64) {
        while (self.updates + 1) * self.tupdate <= now {
            self.updates += 1;
            let at = self.updates * self.tupdate;
            let head = |queue: &VecDeque<Pkt>| queue.front().map_or(0, |pkt| at - pkt.enqueued);
            let curq = head(&self.lq).max(head(&self.cq));
            let s = |ns: u64| ns as f64 / 1e9;
            self.p += 0.16 * (s(curq) - s(self.target)) + 3.2 * (s(curq) - s(self.prevq));
            self.p = self.p.clamp(0.0, 1.0);
            self.prevq = curq;
        }
    }

    fn scheduler(&mut self) -> Option<(Pkt, bool)> {
        match (self.lq.is_empty(), self.cq.is_empty()) {
            (true, true) => {
                self.credit = 1500 * (10 - 90);
                None
            }
            (false, true) => self.lq.pop_front().map(|pkt| (pkt, true)),
            (true, false) => self.cq.pop_front().map(|pkt| (pkt, false)),
            (false, false) if self.credit <= 0 => {
                let pkt = self.lq.pop_front().unwrap();
                self.credit += 10 * pkt.size as i64;
                Some((pkt, true))
            }
            (false, false) => {
                let pkt = self.cq.pop_front().unwrap();
                self.credit -= 90 * pkt.size as i64;
                Some((pkt, false))
            }
        }
    }
}

impl Reference for Queues {
    fn enqueue(&mut self, pkt: Pkt, now: u64, drops: &mut Drops) {
        self.update_until(now);
        if self.lq.len() + self.cq.len() >= self.limit {
            drops.push((pkt, now));
        } else if matches!(pkt.ecn, Ecn::Ect1 | Ecn::Marked) {
            self.lq.push_back(pkt);
        } else {
            self.cq.push_back(pkt);
        }
    }

    fn dequeue(&mut self, now: u64, drops: &mut Drops) -> Option<Pkt> {
        self.update_until(now);
        loop {
            let (mut pkt, low_latency) = self.scheduler()?;
            let draw = |name: &str| unit(self.seed.child(name).word(pkt.index));
            let p_cl = self.k * self.p;
            // p_C = p'^2 >= p_Cmax = 1/k^2.
            let saturated = p_cl >= 1.0;
            // Less than p' twice: with a probability of p'^2.
            let by_pc = f64::max(draw("first"), draw("second")) < self.p;
            if low_latency {
                if saturated && by_pc {
                    drops.push((pkt, now));
                    continue;
                }
                let p_l: f64 = if now - pkt.enqueued > MS { 1.0 } else { 0.0 };
                if draw("coupled") < p_l.max(p_cl) {
                    pkt.ecn = Ecn::Marked;
                }
            } else if by_pc {
                if pkt.ecn == Ecn::NotCapable || saturated {
                    drops.push((pkt, now));
                    continue;
                }
                pkt.ecn = Ecn::Marked;
            }
            return Some(pkt);
        }
    }
}

fn reference(seed: u64, limit: usize, target_ms: u64, tupdate_ms: u64, k: f64) -> Queues {
    Queues {
        lq: VecDeque::new(),
        cq: VecDeque::new(),
        limit,
        target: target_ms * MS,
        tupdate: tupdate_ms * MS,
        k,
        seed: link_seed(seed),
        updates: 0,
        p: 0.0,
        prevq: 0,
        credit: 1500 * (10 - 90),
    }
}

#[test]
fn defaults_drop_and_mark_what_the_rfc_does() {
    let mut defaults = reference(1, 10_000, 15, 16, 2.0);
    let (dropped, marked) =
        assert_same(&json!({"discipline": "dualpi2"}), 1, &arrivals(1, &HEAVY, &ALL), &mut defaults);
    assert!(dropped > 100 && marked > 100, "{dropped} dropped, {marked} marked");
}

#[test]
fn l4s_packets_go_first_and_are_marked_after_a_millisecond() {
    let packet = |index: u64, ecn| (0, Pkt { index, size: 1000, flow: 0, ecn, enqueued: 0 });
    let mut packets: Vec<_> = (0..3).map(|index| packet(index, Ecn::Ect0)).collect();
    packets.extend((3..6).map(|index| packet(index, Ecn::Ect1)));
    let ends = emulate(&json!({"discipline": "dualpi2"}), 1, &packets);
    let order: Vec<u64> = {
        let mut order: Vec<_> = ends.iter().collect();
        order.sort_by_key(|(_, (at, ..))| *at);
        order.into_iter().map(|(index, _)| *index).collect()
    };
    // The first was on the wire before the others came.
    assert_eq!(order, [0, 3, 4, 5, 1, 2]);
    assert_eq!([3, 4, 5].map(|index| ends[&index].2), [Ecn::Ect1, Ecn::Marked, Ecn::Marked]);
}

proptest! {
    #[test]
    fn any_load_is_dropped_and_marked_as_by_the_rfc(
        (seed, phases) in loads(), limit in 1_u64..300, target in 1_u64..40, update in 1_u64..40, k in 1_u64..4,
    ) {
        let settings = json!({
            "discipline": "dualpi2", "queue": {"packets": limit}, "dualpi2_coupling": k,
            "queue_target_ns": target * MS, "queue_update_ns": update * MS,
        });
        let mut reference = reference(seed, limit as usize, target, update, k as f64);
        assert_same(&settings, seed, &arrivals(seed, &phases, &ALL), &mut reference);
    }
}
