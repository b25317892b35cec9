//! The limit on this process's open files. Every connection takes a few at each end, and most systems begin with 1024.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::sync::OnceLock;

/// More than a cell's connections take.
const ENOUGH: u64 = 65_536;

/// The process's initial limits, soft and hard.
static BEFORE: OnceLock<(u64, u64)> = OnceLock::new();

/// Raises the limit as far as this process may.
pub fn allow_many() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return };
    if BEFORE.set((soft, hard)).is_err() || soft >= ENOUGH {
        return;
    }
    if setrlimit(Resource::RLIMIT_NOFILE, ENOUGH, hard.max(ENOUGH)).is_err() {
        // A process without privileges may not raise the hard limit.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard.min(ENOUGH), hard);
    }
}

/// Restores the initial limits for a program: some close as many files as they may have. Call between fork and exec.
pub fn restore() -> nix::Result<()> {
    BEFORE.get().map_or(Ok(()), |&(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft, hard))
}
