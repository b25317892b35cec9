//! Losses' effect on a sender's congestion window, until it is back at its former size.

use crate::DelayCause;

/// Recoveries, in the order of sending.
#[derive(Default)]
pub struct Cuts {
    all: Vec<Cut>,
    /// The most in flight since the last one.
    most: u64,
    /// The acknowledgement at which the last one is over.
    recovered: u64,
}

struct Cut {
    /// Its first retransmission.
    send: usize,
    /// The most in flight before: the window's former size.
    before: u64,
    /// Whether something was lost.
    lost: bool,
}

/// A sender's bytes at a sending.
#[derive(Clone, Copy)]
pub struct Flight {
    /// Sent until then, those of this sending included.
    pub sent: u64,
    pub acknowledged: u64,
}

impl Flight {
    const fn bytes(self) -> u64 {
        self.sent.saturating_sub(self.acknowledged)
    }
}

impl Cuts {
    /// Adds the next sending. `again` for a retransmission: whether the original was lost.
    pub fn add(&mut self, send: usize, flight: Flight, again: Option<bool>) {
        let is_recovering = flight.acknowledged < self.recovered;
        match (again, self.all.last_mut()) {
            (None, _) if is_recovering => {}
            (None, _) => self.most = self.most.max(flight.bytes()),
            (Some(lost), Some(cut)) if is_recovering => cut.lost |= lost,
            (Some(lost), before) => {
                // The window may not have come back since the cut before.
                let before = self.most.max(before.map_or(0, |cut| cut.before));
                self.all.push(Cut { send, before, lost });
                (self.recovered, self.most) = (flight.sent, 0);
            }
        }
    }

    /// The congestion window's name for a sending behind it, with so many bytes in flight.
    pub fn name(&self, send: usize, in_flight: u64) -> DelayCause {
        let until = self.all.partition_point(|cut| cut.send <= send);
        match self.all[..until].last().filter(|cut| in_flight < cut.before) {
            Some(cut) if cut.lost => DelayCause::ReducedWindow,
            Some(_) => DelayCause::Reordering,
            None => DelayCause::CongestionWindow,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_losss_until_it_is_back() {
        let mut cuts = Cuts::default();
        let flight = |sent, acknowledged| Flight { sent, acknowledged };
        cuts.add(0, flight(10, 0), None);
        cuts.add(1, flight(10, 4), Some(true));
        // A later cut does not make it forget the size before the first.
        cuts.add(2, flight(15, 10), None);
        cuts.add(3, flight(15, 12), Some(false));
        assert_eq!(cuts.name(0, 1), DelayCause::CongestionWindow);
        assert_eq!(cuts.name(2, 5), DelayCause::ReducedWindow);
        assert_eq!(cuts.name(4, 9), DelayCause::Reordering);
        assert_eq!(cuts.name(4, 10), DelayCause::CongestionWindow);
    }
}
