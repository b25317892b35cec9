//! RFC 8289, section 5: the pseudocode of `dodequeue`, `control_law` and `dequeue`, with marks in place of drops.

use super::*;
use std::collections::VecDeque;

pub struct Queue {
    packets: VecDeque<Pkt>,
    limit: usize,
    target: u64,
    interval: u64,
    ecn: bool,
    pub vars: Vars,
}

#[derive(Default)]
pub struct Vars {
    first_above_time: u64,
    drop_next: u64,
    pub count: u64,
    lastcount: u64,
    dropping: bool,
}

/// Interval over the root of the count: the greatest whole `d` with `d * d * count <= interval * interval`.
pub fn control_law(t: u64, interval: u64, count: u64) -> u64 {
    let fits = |d: u64| u128::from(d).pow(2) * u128::from(count) <= u128::from(interval).pow(2);
    let (mut low, mut high) = (0, interval);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    t + low
}

/// A queue for `dequeue`: takes the first packet out, and returns the remaining bytes.
pub fn dequeue(
    vars: &mut Vars,
    (target, interval, ecn): (u64, u64, bool),
    now: u64,
    drops: &mut Drops,
    take: &mut dyn FnMut() -> (Option<Pkt>, u64),
) -> Option<Pkt> {
    let mut dodequeue = |vars: &mut Vars| -> (Option<Pkt>, bool) {
        let (p, bytes) = take();
        let Some(pkt) = p else {
            vars.first_above_time = 0;
            return (None, false);
        };
        let sojourn_time = now - pkt.enqueued;
        if sojourn_time < target || bytes <= 1500 {
            vars.first_above_time = 0;
            return (p, false);
        }
        if vars.first_above_time == 0 {
            vars.first_above_time = now + interval;
            return (p, false);
        }
        (p, now >= vars.first_above_time)
    };
    let can_mark = |pkt: &Pkt| ecn && pkt.ecn != Ecn::NotCapable;
    let (mut p, mut ok_to_drop) = dodequeue(vars);
    if vars.dropping {
        if !ok_to_drop {
            vars.dropping = false;
        }
        while now >= vars.drop_next && vars.dropping {
            let pkt = p.unwrap();
            vars.count += 1;
            if can_mark(&pkt) {
                vars.drop_next = control_law(vars.drop_next, interval, vars.count);
                return Some(Pkt { ecn: Ecn::Marked, ..pkt });
            }
            drops.push((pkt, now));
            (p, ok_to_drop) = dodequeue(vars);
            if ok_to_drop {
                vars.drop_next = control_law(vars.drop_next, interval, vars.count);
            } else {
                vars.dropping = false;
            }
        }
    } else if ok_to_drop {
        let pkt = p.unwrap();
        if can_mark(&pkt) {
            p = Some(Pkt { ecn: Ecn::Marked, ..pkt });
        } else {
            drops.push((pkt, now));
            (p, _) = dodequeue(vars);
        }
        vars.dropping = true;
        let delta = vars.count as i64 - vars.lastcount as i64;
        vars.count = 1;
        if delta > 1 && now as i64 - (vars.drop_next as i64) < 16 * interval as i64 {
            vars.count = delta as u64;
        }
        vars.drop_next = control_law(now, interval, vars.count);
        vars.lastcount = vars.count;
    }
    p
}

impl Reference for Queue {
    fn enqueue(&mut self, pkt: Pkt, now: u64, drops: &mut Drops) {
        if self.packets.len() < self.limit { self.packets.push_back(pkt) } else { drops.push((pkt, now)) }
    }

    fn dequeue(&mut self, now: u64, drops: &mut Drops) -> Option<Pkt> {
        let packets = &mut self.packets;
        let mut take = || {
            let first = packets.pop_front();
            (first, packets.iter().map(|pkt| pkt.size).sum())
        };
        dequeue(&mut self.vars, (self.target, self.interval, self.ecn), now, drops, &mut take)
    }
}

fn reference(limit: usize, target: u64, interval: u64, ecn: bool) -> Queue {
    Queue { packets: VecDeque::new(), limit, target, interval, ecn, vars: Vars::default() }
}

#[test]
fn defaults_drop_and_mark_what_the_rfc_does() {
    let settings = json!({"discipline": "codel"});
    let (dropped, marked) =
        assert_same(&settings, 1, &arrivals(1, &HEAVY, &MIXED), &mut reference(1000, 5 * MS, 100 * MS, true));
    assert!(dropped > 100 && marked > 100, "{dropped} dropped, {marked} marked");
    let settings = json!({"discipline": "codel", "queue_marks": false});
    let (dropped, marked) =
        assert_same(&settings, 1, &arrivals(1, &HEAVY, &MIXED), &mut reference(1000, 5 * MS, 100 * MS, false));
    assert!(dropped > 200 && marked == 0, "{dropped} dropped, {marked} marked");
}

proptest! {
    #[test]
    fn any_load_is_dropped_and_marked_as_by_the_rfc(
        (seed, phases) in loads(), limit in 1_u64..300, target in 1_u64..20, interval in 1_u64..200, ecn in any::<bool>(),
    ) {
        let settings = json!({
            "discipline": "codel", "queue": {"packets": limit}, "queue_marks": ecn,
            "queue_target_ns": target * MS, "queue_interval_ns": interval * MS,
        });
        let mut reference = reference(limit as usize, target * MS, interval * MS, ecn);
        assert_same(&settings, seed, &arrivals(seed, &phases, &MIXED), &mut reference);
    }
}
