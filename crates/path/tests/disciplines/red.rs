//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance" (1993): the gaps between drops or
//! marks follow section 7, method 2, with a count of packets since the last one, exclusive. Figure 2, with the mean
//! queue and the thresholds, counts inclusively, so a gap never has its full length.

use super::*;
use std::collections::VecDeque;

struct Queue {
    packets: VecDeque<Pkt>,
    limit: usize,
    min_th: f64,
    max_th: f64,
    max_p: f64,
    w_q: f64,
    seed: Seed,
    avg: f64,
    count: i64,
    /// Since when the link has nothing to send.
    q_time: Option<u64>,
}

impl Reference for Queue {
    fn enqueue(&mut self, mut pkt: Pkt, now: u64, drops: &mut Drops) {
        let q: u64 = self.packets.iter().map(|pkt| pkt.size).sum();
        match self.q_time.take() {
            // A packet of 1000 bytes takes 1 ms.
            Some(since) => self.avg *= (1.0 - self.w_q).powi(((now - since) / MS) as i32),
            None => self.avg += self.w_q * (q as f64 - self.avg),
        }
        let mut dropped = false;
        if self.min_th <= self.avg && self.avg < self.max_th {
            let p_b = self.max_p * (self.avg - self.min_th) / (self.max_th - self.min_th);
            let p_a = if self.count as f64 * p_b < 1.0 { p_b / (1.0 - self.count as f64 * p_b) } else { 1.0 };
            self.count += 1;
            if unit(self.seed.word(pkt.index)) < p_a {
                self.count = 0;
                dropped = pkt.ecn == Ecn::NotCapable;
                if !dropped {
                    pkt.ecn = Ecn::Marked;
                }
            }
        } else if self.max_th <= self.avg {
            dropped = true;
            self.count = 0;
        } else {
            self.count = 0;
        }
        if dropped || self.packets.len() >= self.limit {
            drops.push((pkt, now));
        } else {
            self.packets.push_back(pkt);
        }
    }

    fn dequeue(&mut self, now: u64, _drops: &mut Drops) -> Option<Pkt> {
        let pkt = self.packets.pop_front();
        if pkt.is_none() && self.q_time.is_none() {
            self.q_time = Some(now);
        }
        pkt
    }
}

fn reference(seed: u64, limit: usize, (min_th, max_th, max_p, w_q): (u64, u64, f64, f64)) -> Queue {
    let packets = VecDeque::new();
    let (min_th, max_th) = (min_th as f64, max_th as f64);
    Queue { packets, limit, min_th, max_th, max_p, w_q, seed: link_seed(seed), avg: 0.0, count: 0, q_time: Some(0) }
}

#[test]
fn defaults_drop_and_mark_what_the_paper_does() {
    let mut defaults = reference(1, 1000, (7500, 22_500, 0.02, 0.002));
    let (dropped, marked) = assert_same(&json!({"discipline": "red"}), 1, &arrivals(1, &HEAVY, &MIXED), &mut defaults);
    assert!(dropped > 100 && marked > 10, "{dropped} dropped, {marked} marked");
}

proptest! {
    #[test]
    fn any_load_is_dropped_and_marked_as_by_the_paper(
        (seed, phases) in loads(), limit in 1_u64..300, min in 1_u64..20_000, more in 1_u64..40_000,
        probability in 0.0..=1.0_f64, weight in 0.001..=1.0_f64,
    ) {
        let settings = json!({
            "discipline": "red", "queue": {"packets": limit}, "red_min_bytes": min, "red_max_bytes": min + more,
            "red_probability": probability, "red_weight": weight,
        });
        let mut reference = reference(seed, limit as usize, (min, min + more, probability, weight));
        assert_same(&settings, seed, &arrivals(seed, &phases, &MIXED), &mut reference);
    }
}
