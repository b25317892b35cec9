//! Third-party programs' run time and wait for a processor, threads and descendants included, as the kernel's scheduler
//! counts it (/proc/PID/task/TID/schedstat).
//!
//! A thread's counts end with it, so they are read from time to time: its wait after the last look before its end is
//! not known.

use crate::namespace::Namespace;
use crate::program::Programs;
use crate::realtime::schedstat;
use crosswind_ledger::Starvation;
use crosswind_path::Side;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

/// The threads of all processes in some programs' PID namespace.
#[derive(Debug)]
pub struct ProgramTimes {
    pid_namespace: u64,
    server_network: u64,
    begun: Instant,
    threads: HashMap<i32, Followed>,
    /// Threads whose numbers went to others.
    ended: Vec<Followed>,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    side: Side,
    /// Before it was followed: running and waiting.
    before: (u64, u64),
    now: (u64, u64),
}

impl ProgramTimes {
    /// Counts from now on. Processes in the network of `server` count to the server, everything else to the client.
    pub fn begin(programs: &Programs, server: &Namespace) -> io::Result<Self> {
        let mut times = Self {
            pid_namespace: programs.namespace_number()?,
            server_network: server.number()?,
            begun: Instant::now(),
            threads: HashMap::new(),
            ended: Vec::new(),
        };
        times.look()?;
        for thread in times.threads.values_mut() {
            thread.before = thread.now;
        }
        Ok(times)
    }

    /// Reads the present counts. A process or a thread that ends meanwhile is passed over.
    pub fn look(&mut self) -> io::Result<()> {
        for process in numbered(Path::new("/proc"))? {
            let Some(side) = self.side_of(process) else { continue };
            for thread in numbered(Path::new(&format!("/proc/{process}/task"))).unwrap_or_default() {
                match schedstat(&format!("/proc/{process}/task/{thread}/schedstat")) {
                    Ok(now) => self.note(thread, side, now),
                    Err(error) if is_gone(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Every seen thread's host, run time and wait.
    pub fn threads(&self) -> Vec<(Side, Starvation)> {
        let elapsed_ns = self.begun.elapsed().as_nanos() as u64;
        let since = |now: u64, before: u64| now.saturating_sub(before);
        let all = self.threads.values().chain(&self.ended);
        all.map(|thread| {
            let (run_ns, wait_ns) = (since(thread.now.0, thread.before.0), since(thread.now.1, thread.before.1));
            (thread.side, Starvation { run_ns, wait_ns, elapsed_ns })
        })
        .collect()
    }

    /// A process's host; none if it is not among the programs.
    fn side_of(&self, process: i32) -> Option<Side> {
        let number = |kind: &str| fs::metadata(format!("/proc/{process}/ns/{kind}")).map(|about| about.ino()).ok();
        (number("pid")? == self.pid_namespace).then_some(())?;
        Some(if number("net")? == self.server_network { Side::Reverse } else { Side::Forward })
    }

    fn note(&mut self, thread: i32, side: Side, now: (u64, u64)) {
        let known = self.threads.entry(thread).or_insert(Followed { side, before: (0, 0), now });
        if now.0 < known.now.0 {
            // Another thread has got its number.
            self.ended.push(*known);
            *known = Followed { side, before: (0, 0), now };
        }
        known.now = now;
    }
}

/// Whether a process's file could not be read because the process has ended.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// A directory's numeric entries.
fn numbered(directory: &Path) -> io::Result<Vec<i32>> {
    let names = fs::read_dir(directory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing_yet() -> ProgramTimes {
        ProgramTimes {
            pid_namespace: 0,
            server_network: 0,
            begun: Instant::now(),
            threads: HashMap::new(),
            ended: Vec::new(),
        }
    }

    #[test]
    fn a_thread_counts_from_where_it_was_first_seen_or_from_its_start() {
        let mut times = nothing_yet();
        times.threads.insert(7, Followed { side: Side::Forward, before: (100, 50), now: (100, 50) });
        times.note(7, Side::Forward, (130, 90));
        times.note(8, Side::Reverse, (20, 10));
        let mut found: Vec<_> =
            times.threads().into_iter().map(|(side, it)| (side as usize, it.run_ns, it.wait_ns)).collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 30, 40), (1, 20, 10)]);
    }

    #[test]
    fn a_number_that_went_to_another_thread_loses_nothing() {
        let mut times = nothing_yet();
        times.note(7, Side::Forward, (100, 50));
        times.note(7, Side::Forward, (10, 5));
        let all: u64 = times.threads().iter().map(|(_, thread)| thread.wait_ns).sum();
        assert_eq!(all, 55);
    }
}
