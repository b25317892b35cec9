//! Keeps the hosts' receive backlogs from overflowing.
//!
//! With receive packet steering, a delivered packet waits in its processor's backlog. The kernel limits it to
//! `net.core.netdev_max_backlog` (1000 for the whole machine) and drops from a full one. A network does not overrun a
//! host that way, so the emulator reads the backlogs' lengths, and waits when they are full.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Deliveries between two readings of the backlogs.
const CHECK_INTERVAL: u32 = 128;
/// Waiting packets at which the emulator waits too: with those before the next reading, well below the kernel's bound.
const FULL: u64 = 400;
/// The emulator's longest wait for a backlog to shrink.
const MAX_WAIT: Duration = Duration::from_millis(10);
// Columns of softnet_stat, hexadecimal, one line a processor.
const WAITING: usize = 11;
const PROCESSOR: usize = 12;

/// Watches some processors' backlogs.
pub struct Backlog {
    file: Option<File>,
    cpus: Vec<usize>,
    delivered: u32,
}

impl Backlog {
    /// Watches `cpus`; nothing where the kernel publishes no figures.
    pub fn new(cpus: &[usize]) -> Self {
        let file = File::open("/proc/net/softnet_stat").ok().filter(|_| !cpus.is_empty());
        Self { file, cpus: cpus.to_vec(), delivered: 0 }
    }

    /// Call before a delivery: waits while the backlogs are full.
    pub fn wait_for_space(&mut self) {
        self.delivered += 1;
        if self.delivered < CHECK_INTERVAL {
            return;
        }
        self.delivered = 0;
        let Some(file) = &self.file else { return };
        let mut text = [0; 4096];
        let mut waiting = || {
            let length = file.read_at(&mut text, 0).unwrap_or(0);
            longest(std::str::from_utf8(&text[..length]).unwrap_or(""), &self.cpus)
        };
        if waiting() < FULL {
            return;
        }
        let started = Instant::now();
        while waiting() >= FULL / 2 && started.elapsed() < MAX_WAIT {
            std::hint::spin_loop();
        }
    }
}

/// The longest backlog among `cpus` in the text of `softnet_stat`.
fn longest(text: &str, cpus: &[usize]) -> u64 {
    let of_line = |line: &str| -> Option<u64> {
        let column = |n: usize| u64::from_str_radix(line.split_ascii_whitespace().nth(n)?, 16).ok();
        cpus.contains(&(column(PROCESSOR)? as usize)).then_some(column(WAITING)?)
    };
    text.lines().filter_map(of_line).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
        00052a1e 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000012 00000000 000001f4 00000000 00000000 000001f4\n\
        0002b55d 00000000 00000003 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000007 00000001 00000000 00000007\n";

    #[test]
    fn the_longest_backlog_of_the_given_processors_is_found() {
        assert_eq!(longest(TEXT, &[0]), 500);
        assert_eq!(longest(TEXT, &[1]), 7);
        assert_eq!(longest(TEXT, &[0, 1]), 500);
    }

    #[test]
    fn a_processor_that_is_not_listed_has_no_backlog() {
        assert_eq!(longest(TEXT, &[2]), 0);
        assert_eq!(longest("", &[0]), 0);
        assert_eq!(longest("00 00\nnonsense", &[0]), 0);
    }
}
