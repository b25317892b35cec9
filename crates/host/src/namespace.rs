//! Anonymous network namespaces: held by a file descriptor, gone with the process.

use crate::error::{HostError, Result};
use nix::sched::{CloneFlags, setns, unshare};
use std::cell::RefCell;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

/// A network namespace without a name. Threads enter it; it leaves no file.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<File>,
    /// The process's own needs no entering, and so no privilege.
    is_own: bool,
}

impl Namespace {
    /// A new, empty namespace.
    pub fn new() -> Result<Self> {
        // `unshare` moves the calling thread, so a separate thread makes the namespace and leaves only the descriptor.
        let made = thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| {
                HostError::new("cannot make a network namespace", e)
                    .hint("run with sudo, or allow user namespaces; `crosswind doctor` shows what this machine allows")
            })?;
            File::open("/proc/thread-self/ns/net")
                .map_err(|e| HostError::new("cannot open /proc/thread-self/ns/net", e))
        });
        let file = made.join().unwrap_or_else(|_| Err(panicked()))?;
        Ok(Self { file: Arc::new(file), is_own: false })
    }

    /// The namespace this process was started in.
    pub fn of_this_process() -> Result<Self> {
        let file = File::open("/proc/self/ns/net").map_err(|e| HostError::new("cannot open /proc/self/ns/net", e))?;
        Ok(Self { file: Arc::new(file), is_own: true })
    }

    /// Moves the calling thread into the namespace, for good.
    pub fn enter(&self) -> Result<()> {
        HOME.set(Home::Unknown);
        if self.is_own {
            return Ok(());
        }
        self.set()
    }

    fn set(&self) -> Result<()> {
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|e| HostError::new("cannot enter a network namespace", e))
    }

    /// The number its kernel gives it.
    pub fn number(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.ino())
    }

    /// Runs `work` inside the namespace and returns its result. Afterwards the calling thread is back.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        // A new thread takes a dozen system calls, and a cell runs two dozen pieces of work.
        if let Home::At(home) = Home::of_this_thread() {
            self.set()?;
            let result = catch_unwind(AssertUnwindSafe(work));
            home.set()?;
            return result.unwrap_or_else(|_| Err(panicked()));
        }
        thread::scope(|scope| {
            let working = scope.spawn(|| {
                self.enter()?;
                work()
            });
            working.join().unwrap_or_else(|_| Err(panicked()))
        })
    }
}

/// A thread's namespace to return to.
#[derive(Clone)]
enum Home {
    /// Nobody has asked yet.
    Unknown,
    At(Namespace),
    /// It may not come back, as this process is root of a user namespace only.
    Closed,
}

thread_local! {
    static HOME: RefCell<Home> = const { RefCell::new(Home::Unknown) };
}

impl Home {
    fn of_this_thread() -> Self {
        HOME.with_borrow_mut(|home| {
            if matches!(home, Self::Unknown) {
                *home = Self::find().map_or(Self::Closed, Self::At);
            }
            home.clone()
        })
    }

    fn find() -> Option<Namespace> {
        let file = Arc::new(File::open("/proc/thread-self/ns/net").ok()?);
        let namespace = Namespace { file, is_own: false };
        namespace.set().ok().map(|()| namespace)
    }
}

fn panicked() -> HostError {
    HostError::unsupported("work of the host layer", "panicked")
}

impl std::os::fd::AsRawFd for Namespace {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.file.as_raw_fd()
    }
}
