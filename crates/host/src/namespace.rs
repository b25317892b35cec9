//! Anonymous network namespaces: held by a file descriptor, gone with the process.

use crate::error::{HostError, Result};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::thread;

/// A network namespace without a name. Threads enter it; it leaves no file.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<File>,
    /// That of the process itself needs no entering, and so no privilege.
    is_own: bool,
}

impl Namespace {
    /// A new, empty namespace.
    pub fn new() -> Result<Self> {
        // `unshare` moves the calling thread, so a thread of its own makes the namespace and leaves only the descriptor.
        let file = join(thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| {
                HostError::new("cannot make a network namespace", e)
                    .hint("run with sudo, or allow user namespaces; `crosswind doctor` shows what this machine allows")
            })?;
            File::open("/proc/thread-self/ns/net")
                .map_err(|e| HostError::new("cannot open /proc/thread-self/ns/net", e))
        }))?;
        Ok(Self { file: Arc::new(file), is_own: false })
    }

    /// The namespace that this process was started in.
    pub fn of_this_process() -> Result<Self> {
        let file = File::open("/proc/self/ns/net").map_err(|e| HostError::new("cannot open /proc/self/ns/net", e))?;
        Ok(Self { file: Arc::new(file), is_own: true })
    }

    /// Moves the calling thread into the namespace, for good.
    pub fn enter(&self) -> Result<()> {
        if self.is_own {
            return Ok(());
        }
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|e| HostError::new("cannot enter a network namespace", e))
    }

    /// The number that its kernel gives it.
    pub fn number(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// Runs `work` inside the namespace and returns what it returns. The calling thread stays where it is.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        thread::scope(|scope| {
            join_scoped(scope.spawn(|| {
                self.enter()?;
                work()
            }))
        })
    }
}

fn join<T>(handle: thread::JoinHandle<Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|_| Err(HostError::unsupported("a thread of the host layer", "panicked")))
}

fn join_scoped<T>(handle: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().unwrap_or_else(|_| Err(HostError::unsupported("a thread of the host layer", "panicked")))
}

impl std::os::fd::AsRawFd for Namespace {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.file.as_raw_fd()
    }
}
