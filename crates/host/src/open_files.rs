//! How many files this process may have open. Every connection takes a few at each end, and 1024 is what most systems begin with.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::sync::OnceLock;

/// More than the connections take that a cell may have.
const ENOUGH: u64 = 65_536;

/// What the process had before, soft and hard.
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

/// Gives a program that is about to start what it would have had: some close as many files as they may have. To be called between fork and
/// exec.
pub fn restore() -> nix::Result<()> {
    BEFORE.get().map_or(Ok(()), |&(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft, hard))
}
