//! An element without delay: each packet goes on at once, or is dropped or duplicated.

use crate::{Element, Outcome, Packet};
use alloc::boxed::Box;

/// An element around `judge`, which lets no packet stay.
pub fn filter(judge: impl FnMut(&mut Packet) -> Outcome + Send + 'static) -> Box<dyn Element> {
    Box::new(Filter(judge))
}

struct Filter<F>(F);

impl<F: FnMut(&mut Packet) -> Outcome + Send> Element for Filter<F> {
    fn judge_packet(&mut self, packet: &mut Packet) -> Outcome {
        (self.0)(packet)
    }
}
