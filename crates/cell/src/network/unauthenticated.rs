//! Unauthenticated connections: limits on their number, and on their log lines.
//!
//! Whoever connects gets a chance. Over a limit, the oldest has to go: first among the same address, so that one
//! stranger cannot lock the others out. Without I/O.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Per address at a time.
const OF_AN_ADDRESS: usize = 8;
/// For all addresses.
const OF_ALL: usize = 64;

/// The time window for counting refusals.
pub const LOG_WINDOW: Duration = Duration::from_secs(10);
/// Lines per address within it, and the number of addresses with any.
const LINES_OF_AN_ADDRESS: usize = 2;
const LOGGED_ADDRESSES: usize = 10;

/// One owner: an IPv4 address, or an IPv6 /64 network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner(IpAddr);

impl From<IpAddr> for Owner {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(address) => Self(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()),
            address @ IpAddr::V4(_) => Self(address),
        }
    }
}

/// Unauthenticated connections, the oldest first. `T` ends one of them.
#[derive(Debug)]
pub struct Unauthenticated<T> {
    waiting: Vec<(u64, Owner, T)>,
    next: u64,
}

impl<T> Default for Unauthenticated<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), next: 0 }
    }
}

impl<T> Unauthenticated<T> {
    /// Adds one. Returns its number, and the one that has to go for it.
    pub fn add(&mut self, address: IpAddr, ending: T) -> (u64, Option<T>) {
        let (owner, number) = (Owner::from(address), self.next);
        let own = |(_, other, _): &&(u64, Owner, T)| *other == owner;
        let oldest = match self.waiting.iter().filter(own).count() {
            OF_AN_ADDRESS.. => self.waiting.iter().position(|one| one.1 == owner),
            _ if self.waiting.len() >= OF_ALL => Some(0),
            _ => None,
        };
        let gone = oldest.map(|at| self.waiting.remove(at).2);
        self.waiting.push((number, owner, ending));
        self.next += 1;
        (number, gone)
    }

    /// It has proven the token, or is gone.
    pub fn remove(&mut self, number: u64) {
        self.waiting.retain(|one| one.0 != number);
    }
}

/// Chooses refusals for the log: a few per address, and the others by number.
#[derive(Debug)]
pub struct RefusalLog {
    until: Instant,
    lines: Vec<(Owner, usize)>,
    left_out: u64,
}

impl RefusalLog {
    pub fn new(now: Instant) -> Self {
        Self { until: now + LOG_WINDOW, lines: Vec::new(), left_out: 0 }
    }

    /// Whether a refusal gets a line.
    pub fn handle_refusal(&mut self, address: IpAddr) -> bool {
        let owner = Owner::from(address);
        let known = self.lines.iter().position(|(other, _)| *other == owner);
        let at = known.or_else(|| {
            (self.lines.len() < LOGGED_ADDRESSES).then(|| {
                self.lines.push((owner, 0));
                self.lines.len() - 1
            })
        });
        let is_logged = at.is_some_and(|at| self.lines[at].1 < LINES_OF_AN_ADDRESS);
        match at {
            Some(at) if is_logged => self.lines[at].1 += 1,
            _ => self.left_out += 1,
        }
        is_logged
    }

    /// The number of refusals without a line in the window over at `now`, once.
    pub fn poll_left_out(&mut self, now: Instant) -> Option<u64> {
        if now < self.until {
            return None;
        }
        let left_out = self.left_out;
        *self = Self::new(now);
        (left_out > 0).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_oldest_of_the_same_address_goes_first() {
        let mut unauthenticated = Unauthenticated::default();
        assert_eq!(unauthenticated.add(ip("192.0.2.1"), 100), (0, None));
        for number in 1..=8 {
            assert_eq!(unauthenticated.add(ip("::ffff:192.0.2.2"), number), (number, None));
        }
        assert_eq!(unauthenticated.add(ip("192.0.2.2"), 9), (9, Some(1)));
        unauthenticated.remove(5);
        assert_eq!(unauthenticated.add(ip("192.0.2.2"), 10), (10, None));
        assert_eq!(unauthenticated.add(ip("192.0.2.2"), 11), (11, Some(2)));
    }

    #[test]
    fn a_network_of_ipv6_is_one_owner_and_of_many_owners_the_oldest_goes() {
        let mut unauthenticated = Unauthenticated::default();
        for number in 0..8 {
            assert_eq!(unauthenticated.add(ip(&format!("2001:db8::{number}")), number).1, None);
        }
        assert_eq!(unauthenticated.add(ip("2001:db8::ffff:0:0:1"), 8).1, Some(0));
        for number in 9..65 {
            assert_eq!(unauthenticated.add(ip(&format!("2001:db8:{number}::1")), number).1, None, "{number}");
        }
        assert_eq!(unauthenticated.add(ip("2001:db8:99::1"), 99).1, Some(1));
    }

    #[test]
    fn a_flood_is_a_few_lines_and_a_number_and_hides_no_other_address() {
        let start = Instant::now();
        let mut log = RefusalLog::new(start);
        let lines = (0..100_000).filter(|_| log.handle_refusal(ip("192.0.2.1"))).count();
        assert_eq!(lines, 2);
        assert!(log.handle_refusal(ip("192.0.2.2")));
        assert_eq!(log.poll_left_out(start + LOG_WINDOW / 2), None);
        assert_eq!(log.poll_left_out(start + LOG_WINDOW), Some(99_998));
        assert!(log.handle_refusal(ip("192.0.2.1")));
        assert_eq!(log.poll_left_out(start + 2 * LOG_WINDOW), None);
        let lines = (0..1000_u32).filter(|&number| log.handle_refusal(std::net::Ipv4Addr::from(number).into())).count();
        assert_eq!(lines, LOGGED_ADDRESSES);
    }
}
