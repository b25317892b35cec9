//! Users' programs inside a namespace. They end with the process that started them, whatever ends it.

use crate::error::{HostError, Result};
use crate::guest::in_virtual_time;
use crate::home::Home;
pub use crate::host_names::Names;
use crate::namespace::Namespace;
use crate::open_files;
use crate::terminal::{leave_group, take_terminal};
use crate::user::User;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::time::TimeSpec;
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The option that makes the cell binary the first process of a PID namespace.
pub const INIT: &str = "--init";

/// The environment variable for two machines' shared token; no program inherits it.
pub const TOKEN: &str = "CROSSWIND_TOKEN";

/// Advice about a program that does not start.
const NOT_HERE: &str = "is it installed, and on the PATH?";
const NOT_IN_GUEST: &str =
    "is it installed, on the PATH, and outside of /dev, /proc, /run and /sys, which are a guest's own?";

/// Likewise about one without the right to another user.
const NOT_AS_USER: &str = "only root may run programs as another user; in virtual time (--clock virtual) everybody may";

/// The polling interval for ends of processes other than children.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A PID namespace for programs: when its first process ends, the kernel ends every other, grandchildren included.
///
/// It belongs to a thread of its own, the parent of every program: a thread with children in another PID namespace can
/// start no threads any more, and a program's parent-death signal is about the thread that started it.
pub struct Programs {
    starter: Sender<Request>,
    init: Child,
    started: Vec<Child>,
}

/// A started program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramId(usize);

/// A program to be started.
#[derive(Debug)]
pub struct Launch<'a> {
    /// Its host.
    pub namespace: &'a Namespace,
    /// Its processors; any, when empty.
    pub cpus: &'a [usize],
    /// The program, and its arguments.
    pub arguments: &'a [String],
    /// Variables beside this process's; the last one with a name counts.
    pub environment: Vec<(String, OsString)>,
    /// As whom it runs; as this process without one.
    pub user: Option<&'a User>,
    /// Its host's name and files; the machine's without one.
    pub home: Option<&'a Home>,
}

/// A program's standard streams.
#[derive(Debug)]
pub struct Streams {
    /// Its input.
    pub input: Stdio,
    /// Where it writes.
    pub output: Stdio,
    /// Where it writes its errors.
    pub errors: Stdio,
    /// Whether it takes the terminal among them.
    pub foreground: bool,
    /// The largest file it may write, bytes; SIGXFSZ ends it beyond.
    pub largest_file: Option<u64>,
}

/// The result of waiting for a program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It wrote this many bytes.
    Bytes(usize),
    /// It has closed its output, or has ended and left nothing to be read.
    End,
    /// Neither, until the limit.
    Nothing,
}

struct Request {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

impl Programs {
    /// Makes the namespace.
    pub fn new() -> Result<Self> {
        let (starter, requests) = channel::<Request>();
        let (ready, made) = channel();
        thread::Builder::new()
            .name("programs".into())
            .spawn(move || {
                let init = make_namespace();
                let failed = init.is_err();
                // The receiver is gone only when the process ends.
                let _ = ready.send(init);
                if failed {
                    return;
                }
                for mut request in requests {
                    let _ = request.answer.send(request.command.spawn());
                }
            })
            .map_err(|e| HostError::new("cannot start a thread", e))?;
        let gone = |_| HostError::unsupported("the thread that starts programs", "has ended");
        let init = made.recv().map_err(gone)??;
        Ok(Self { starter, init, started: Vec::new() })
    }

    /// Starts a program.
    pub fn start(&mut self, launch: Launch<'_>, streams: Streams) -> Result<ProgramId> {
        let Launch { namespace, cpus, arguments, environment, user, home } = launch;
        let Some((program, rest)) = arguments.split_first() else {
            return Err(HostError::unsupported("a program was to be started", "its argument list is empty"));
        };
        let mut set = CpuSet::new();
        for &cpu in cpus {
            set.set(cpu).map_err(|e| HostError::new(format!("cannot use processor {cpu}"), e))?;
        }
        let pinned = !cpus.is_empty();
        let (network, foreground, largest_file) = (namespace.as_raw_fd(), streams.foreground, streams.largest_file);
        let (other, door) = (user.cloned(), home.map(Home::door));
        let mut command = Command::new(program);
        command.args(rest).env_remove(TOKEN).envs(environment);
        command.stdin(streams.input).stdout(streams.output).stderr(streams.errors);
        // SAFETY: only async-signal-safe system calls between fork and exec; `namespace` and `home` keep the descriptors
        // open meanwhile.
        unsafe {
            command.pre_exec(move || {
                set_pdeathsig(Signal::SIGKILL)?;
                leave_group()?;
                if foreground {
                    take_terminal()?;
                }
                open_files::restore()?;
                if let Some(bytes) = largest_file {
                    setrlimit(Resource::RLIMIT_FSIZE, bytes, bytes)?;
                }
                if let Some(door) = &door {
                    door.enter()?;
                }
                setns(BorrowedFd::borrow_raw(network), CloneFlags::CLONE_NEWNET)?;
                if pinned {
                    sched_setaffinity(Pid::from_raw(0), &set)?;
                }
                if let Some(user) = &other {
                    user.assume()?;
                    // Another user starts without it.
                    set_pdeathsig(Signal::SIGKILL)?;
                }
                sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
                Ok(())
            });
        }
        let (answer, started) = channel();
        let gone = || HostError::unsupported("the thread that starts programs", "has ended");
        self.starter.send(Request { command, answer }).map_err(|_| gone())?;
        let child = started.recv().map_err(|_| gone())?.map_err(|e| {
            let hint = match e.raw_os_error() {
                Some(libc::EPERM | libc::EINVAL) if user.is_some() => NOT_AS_USER,
                _ if in_virtual_time() => NOT_IN_GUEST,
                _ => NOT_HERE,
            };
            HostError::new(format!("cannot start {program}"), e).hint(hint)
        })?;
        self.started.push(child);
        Ok(ProgramId(self.started.len() - 1))
    }

    /// This end of a program's pipes, each once: its input, its output, its errors.
    pub fn pipes(&mut self, program: ProgramId) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        let child = &mut self.started[program.0];
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    }

    /// Waits until a program has written to `output` or has ended, at most `limit`. Output from another process that
    /// inherited the stream is heard while the program itself runs.
    pub fn hear(
        &self,
        program: ProgramId,
        output: &mut ChildStdout,
        buffer: &mut [u8],
        limit: Duration,
    ) -> Result<Heard> {
        let failed = |cause| HostError::new("cannot read what a program writes", cause);
        let end = descriptor_of(&self.started[program.0]).map_err(failed)?;
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut watched =
                [PollFd::new(output.as_fd(), PollFlags::POLLIN), PollFd::new(end.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut watched, Some(TimeSpec::from_duration(left)), None) {
                Ok(0) => return Ok(Heard::Nothing),
                Ok(_) if watched[0].any().unwrap_or(false) => {
                    let count = output.read(buffer).map_err(failed)?;
                    return Ok(if count == 0 { Heard::End } else { Heard::Bytes(count) });
                }
                Ok(_) => return Ok(Heard::End),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// The PID namespace of all of them, by its kernel's number.
    pub fn namespace_number(&self) -> io::Result<u64> {
        Ok(std::fs::metadata(format!("/proc/{}/ns/pid", self.init.id()))?.ino())
    }

    /// How a program ended, once it has; `None` when it has not after `limit`.
    pub fn wait(&mut self, program: ProgramId, limit: Duration) -> Result<Option<ExitStatus>> {
        let failed = |cause| HostError::new("cannot wait for a program", cause);
        // After waiting it is no process any more.
        if let Some(status) = self.try_wait(program)? {
            return Ok(Some(status));
        }
        let child = &mut self.started[program.0];
        let end = descriptor_of(child).map_err(failed)?;
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut watched = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut watched, Some(TimeSpec::from_duration(left)), None) {
                Ok(0) => return Ok(None),
                Ok(_) => return child.wait().map(Some).map_err(failed),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// Programs' remaining processes: all in the namespace except its first.
    pub fn processes(&self) -> Result<Vec<u32>> {
        let failed = |cause| HostError::new("cannot list a PID namespace's processes", cause);
        let mut found = processes_in(self.namespace_number().map_err(failed)?).map_err(failed)?;
        found.retain(|pid| *pid != self.init.id());
        Ok(found)
    }

    /// Asks all of them to end (SIGTERM), and waits until they have, at most `grace`.
    pub fn terminate_all(&self, grace: Duration) -> Result<()> {
        for pid in self.processes()? {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGTERM);
        }
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline && !self.processes()?.is_empty() {
            thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Asks a program to end (SIGTERM) when called, from any thread.
    pub fn stopper(&self, program: ProgramId) -> Result<impl Fn() + Send + use<>> {
        let failed = |cause| HostError::new("cannot have a program stopped", cause);
        let descriptor = descriptor_of(&self.started[program.0]).map_err(failed)?;
        Ok(move || {
            // SAFETY: a system call with numbers, and no information about the signal. An error means it has ended.
            let _ = unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    descriptor.as_raw_fd(),
                    libc::SIGTERM,
                    std::ptr::null::<()>(),
                    0,
                )
            };
        })
    }

    /// How a program ended, if it has.
    pub fn try_wait(&mut self, program: ProgramId) -> Result<Option<ExitStatus>> {
        self.started[program.0].try_wait().map_err(|e| HostError::new("cannot wait for a program", e))
    }

    /// Asks a program to end (SIGTERM), and ends it after `grace`. Returns how it ended.
    pub fn terminate(&mut self, program: ProgramId, grace: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.try_wait(program)? {
            return Ok(status);
        }
        // It cannot have become another process: nobody has waited for it.
        let _ = kill(Pid::from_raw(self.started[program.0].id() as i32), Signal::SIGTERM);
        if let Some(status) = self.wait(program, grace)? {
            return Ok(status);
        }
        let child = &mut self.started[program.0];
        child.kill().and_then(|()| child.wait()).map_err(|e| HostError::new("cannot end a program", e))
    }
}

/// This process's view of a PID namespace.
fn processes_in(namespace: u64) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that has just ended has no namespace.
        if std::fs::metadata(format!("/proc/{pid}/ns/pid")).is_ok_and(|about| about.ino() == namespace) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// How a program ended, in words: "exit status 1", "signal 9 (SIGKILL)".
pub fn end_in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("signal {number} ({signal})"),
            Err(_) => format!("signal {number}"),
        },
        (None, None) => status.to_string(),
    }
}

/// Whether a program was ended because it wrote more to a file than it may ([`Streams::largest_file`]).
pub fn wrote_too_much(status: ExitStatus) -> bool {
    status.signal() == Some(libc::SIGXFSZ)
}

/// A descriptor readable after a child's end.
fn descriptor_of(child: &Child) -> io::Result<OwnedFd> {
    // SAFETY: a system call with two numbers.
    let number = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id() as libc::pid_t, 0) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nothing else has its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number as RawFd) })
}

/// Sends the calling thread's children to a new PID namespace, and starts its first process.
fn make_namespace() -> Result<Child> {
    unshare(CloneFlags::CLONE_NEWPID).map_err(|e| HostError::new("cannot make a PID namespace", e))?;
    let mut command = Command::new("/proc/self/exe");
    command.arg(INIT).env_remove(TOKEN).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe { command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?)) };
    command.spawn().map_err(|e| HostError::new("cannot start the first process of a PID namespace", e))
}

impl Drop for Programs {
    fn drop(&mut self) {
        // The first process cannot end before this process, their parent, has waited for every program. An error means
        // the program has already ended.
        let _ = self.init.kill();
        for program in &mut self.started {
            let _ = program.kill();
            let _ = program.wait();
        }
        let _ = self.init.wait();
    }
}

/// A PID namespace's first process until it is killed: it waits for ended processes.
pub fn be_init() -> ! {
    loop {
        // There is no such process now. An interrupted pause only means another attempt.
        if nix::sys::wait::wait().is_err() {
            nix::unistd::pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_status_or_a_signal() {
        let words = |raw| end_in_words(ExitStatus::from_raw(raw));
        assert_eq!([words(0), words(7 << 8), words(9)], ["exit status 0", "exit status 7", "signal 9 (SIGKILL)"]);
        assert_eq!(words(64), "signal 64");
        assert_eq!([25, 25 << 8, 9].map(|raw| wrote_too_much(ExitStatus::from_raw(raw))), [true, false, false]);
    }
}
