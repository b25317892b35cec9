//! An element that takes no time: each packet passes at once, or is dropped or duplicated.

use crate::{Cause, Departure, Element, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use crosswind_units::Instant;

/// An element that lets each packet depart as `judge` says.
pub fn passing(judge: impl FnMut(Packet) -> Departure + Send + 'static) -> Box<dyn Element> {
    Box::new(Filter { judge, out: VecDeque::new() })
}

/// An element that drops the packets for which `judge` has a cause.
pub fn filter(mut judge: impl FnMut(&mut Packet) -> Option<Cause> + Send + 'static) -> Box<dyn Element> {
    passing(move |mut packet| match judge(&mut packet) {
        Some(cause) => Departure::Dropped(packet, cause),
        None => Departure::Forwarded(packet),
    })
}

struct Filter<F> {
    judge: F,
    out: VecDeque<Departure>,
}

impl<F: FnMut(Packet) -> Departure + Send> Element for Filter<F> {
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        self.out.push_back((self.judge)(packet));
    }

    fn poll_packet(&mut self, _now: Instant) -> Option<Departure> {
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn queued(&self) -> usize {
        self.out.len()
    }
}
