//! RFC 8033, sections 4 and 5: random dropping with derandomisation, the controller with its auto-tuning, and the burst allowance. The delay
//! is measured by timestamps, and grows the probability beyond 250 ms, as in Linux.

use super::*;
use std::collections::VecDeque;

struct Queue {
    packets: VecDeque<Pkt>,
    limit: usize,
    qdelay_ref: f64,
    t_update: u64,
    ecn: bool,
    seed: Seed,
    updates: u64,
    drop_prob: f64,
    accu_prob: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    burst_allowance: f64,
}

const MAX_BURST: f64 = 0.150;

impl Queue {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|pkt| pkt.size).sum()
    }

    /// Every `T_UPDATE`, from the beginning on.
    fn update_until(&mut self, now: u64) {
        while (self.updates + 1) * self.t_update <= now {
            self.updates += 1;
            let mut p =
                0.125 * (self.current_qdelay - self.qdelay_ref) + 1.25 * (self.current_qdelay - self.qdelay_old);
            if self.drop_prob < 0.000_001 {
                p /= 2048.0;
            } else if self.drop_prob < 0.000_01 {
                p /= 512.0;
            } else if self.drop_prob < 0.000_1 {
                p /= 128.0;
            } else if self.drop_prob < 0.001 {
                p /= 32.0;
            } else if self.drop_prob < 0.01 {
                p /= 8.0;
            } else if self.drop_prob < 0.1 {
                p /= 2.0;
            } else if p > 0.02 {
                p = 0.02;
            }
            if self.current_qdelay > 0.25 {
                p += 0.02;
            }
            self.drop_prob += p;
            if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
                self.drop_prob *= 0.98;
            }
            self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
            self.burst_allowance = f64::max(0.0, self.burst_allowance - self.t_update as f64 / 1e9);
            if self.burst_allowance < 1e-12 {
                self.burst_allowance = 0.0;
            }
            let half = self.qdelay_ref / 2.0;
            if self.drop_prob == 0.0 && self.current_qdelay < half && self.qdelay_old < half {
                self.burst_allowance = MAX_BURST;
                self.accu_prob = 0.0;
            }
            self.qdelay_old = self.current_qdelay;
        }
    }

    fn drop_early(&mut self, index: u64) -> bool {
        if self.burst_allowance > 0.0 {
            return false;
        }
        if (self.current_qdelay < self.qdelay_ref / 2.0 && self.drop_prob < 0.2) || self.bytes() < 2 * 1500 {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 || unit(self.seed.word(index)) < self.drop_prob {
            self.accu_prob = 0.0;
            return true;
        }
        false
    }
}

impl Reference for Queue {
    fn enqueue(&mut self, mut pkt: Pkt, now: u64, drops: &mut Drops) {
        self.update_until(now);
        if self.packets.len() >= self.limit {
            self.accu_prob = 0.0;
            drops.push((pkt, now));
            return;
        }
        if self.drop_early(pkt.index) {
            if self.ecn && pkt.ecn != Ecn::NotCapable && self.drop_prob <= 0.1 {
                pkt.ecn = Ecn::Marked;
            } else {
                drops.push((pkt, now));
                return;
            }
        }
        self.packets.push_back(pkt);
    }

    fn dequeue(&mut self, now: u64, _drops: &mut Drops) -> Option<Pkt> {
        self.update_until(now);
        let pkt = self.packets.pop_front()?;
        self.current_qdelay = if self.packets.is_empty() { 0.0 } else { (now - pkt.enqueued) as f64 / 1e9 };
        Some(pkt)
    }
}

fn reference(seed: u64, limit: usize, target_ms: u64, update_ms: u64, ecn: bool) -> Queue {
    Queue {
        packets: VecDeque::new(),
        limit,
        qdelay_ref: target_ms as f64 / 1e3,
        t_update: update_ms * MS,
        ecn,
        seed: link_seed(seed),
        updates: 0,
        drop_prob: 0.0,
        accu_prob: 0.0,
        current_qdelay: 0.0,
        qdelay_old: 0.0,
        burst_allowance: MAX_BURST,
    }
}

#[test]
fn defaults_drop_and_mark_what_the_rfc_does() {
    let mut defaults = reference(1, 1000, 15, 15, true);
    let (dropped, _) = assert_same(&json!({"discipline": "pie"}), 1, &arrivals(1, &HEAVY, &MIXED), &mut defaults);
    assert!(dropped > 100, "{dropped} dropped");
    // Only as long as the probability is small are packets marked.
    let light = arrivals(2, &[(200, 150), (1500, 100), (200, 150), (1500, 99), (200, 150), (1500, 98)], &MIXED);
    let (dropped, marked) =
        assert_same(&json!({"discipline": "pie"}), 2, &light, &mut reference(2, 1000, 15, 15, true));
    assert!(dropped > 0 && marked > 10, "{dropped} dropped, {marked} marked");
}

proptest! {
    #[test]
    fn any_load_is_dropped_and_marked_as_by_the_rfc(
        (seed, phases) in loads(), limit in 1_u64..300, target in 1_u64..40, update in 1_u64..40, ecn in any::<bool>(),
    ) {
        let settings = json!({
            "discipline": "pie", "queue": {"packets": limit}, "queue_marks": ecn,
            "queue_target_ns": target * MS, "queue_update_ns": update * MS,
        });
        let mut reference = reference(seed, limit as usize, target, update, ecn);
        assert_same(&settings, seed, &arrivals(seed, &phases, &MIXED), &mut reference);
    }
}
