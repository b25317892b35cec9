//! The first process of a guest: a kernel on a clock of its own (kernel/README.md) that runs one program and ends.
//!
//! It makes what programs expect of a system, starts the program with the host's input and output, and says at the end
//! with which status the program ended. The host's files are there as they are, read-only; one directory can be written.
//! Programs that somebody else wrote may write anywhere: a layer in the guest's memory takes what they change, and goes with it.

use crate::error::{HostError, Result};
use crate::netlink::Netlink;
use crate::sysctl;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, fork, pivot_root, sync};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The option that makes the cell binary a guest's first process.
pub const GUEST: &str = "--guest";

/// How virtual time calls itself.
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const VIRTUAL_CLOCK: &str = "time-travel-clock";

/// Where programs may keep temporary files.
const TEMPORARY: &str = "/run/tmp";
/// Where files are that come back with the run.
pub const OUTPUT: &str = "/run/output";

/// Where the layer that programs write to is made, and the root that has it.
const LAYER: &str = "/run/layer";
const NEW_ROOT: &str = "/run/root";
/// What programs may write, to the layer and to [`OUTPUT`] each: a guest's memory is the machine's.
const LAYER_OPTIONS: &str = "mode=755,size=1g";
const OUTPUT_OPTIONS: &str = "mode=1777,size=1g,nr_inodes=100k";

/// What the kernel would derive from the size of a machine's memory: as Linux 6.12 has it from 4 GB on.
const MACHINE_DEFAULTS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_mem", "190000 254000 380000"),
];

/// System log: all of it, without removing anything (syslog(2)).
const SYSLOG_ACTION_READ_ALL: libc::c_int = 3;
/// How much of the system log's end is looked at.
const LOG_BYTES: usize = 16 * 1024;

mod request {
    #![allow(missing_docs)] // of what the macro makes
    nix::ioctl_none!(reseed, b'R', 0x07);
}

/// What a guest is asked to do, as its host writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestRequest {
    /// What all randomness inside derives from.
    seed: u64,
    /// A directory of the host that can be written.
    writable: Option<PathBuf>,
    /// Whether all other files can be written too, in a layer of the guest's own.
    #[serde(default)]
    layered: bool,
    /// Where the program starts.
    directory: PathBuf,
    /// The program's environment.
    environment: BTreeMap<String, String>,
    /// The program and its arguments; without any, this binary.
    #[serde(default)]
    program: Vec<String>,
    /// What the program reads from its standard input.
    input: String,
}

/// The last line of a guest.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename = "guest_ended")]
struct GuestEnded {
    /// The program's exit status; 128 and the signal's number if a signal ended it.
    status: i32,
    /// Why the program was not started.
    error: Option<String>,
    /// What the kernel said when it found that the host had ended one of the processes on which it runs those in here.
    lost_process: Option<String>,
}

/// Whether this process runs in virtual time.
pub fn in_virtual_time() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| fs::read_to_string(CLOCK).is_ok_and(|name| name.trim() == VIRTUAL_CLOCK))
}

/// Does all that a guest's first process does, and switches the guest off. It returns in the process that is to run a cell,
/// where the request names no other program: a copy of this one, which is ready sooner than one that is started anew.
///
/// To be called before there is a second thread.
pub fn be_guest() {
    let (status, error) = match serve() {
        Ok(Some(status)) => (status, None),
        Ok(None) => return,
        Err(error) => (1, Some(error.to_string())),
    };
    let line = serde_json::to_string(&GuestEnded { status, error, lost_process: lost_process() }).unwrap_or_default();
    if let Ok(mut host) = OpenOptions::new().write(true).open("/dev/cell") {
        let _ = writeln!(host, "{line}");
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
    unreachable!("a guest that is switched off does not go on");
}

/// The program's exit status; nothing in the process that runs a cell.
fn serve() -> Result<Option<i32>> {
    file_systems()?;
    let mut text = String::new();
    let mut host = File::open("/dev/cell").map_err(|e| HostError::new("cannot open /dev/cell", e))?;
    host.read_to_string(&mut text).map_err(|e| HostError::new("cannot read what to do", e))?;
    let request: GuestRequest =
        serde_json::from_str(&text).map_err(|e| HostError::unsupported("cannot read what to do", e.to_string()))?;
    if request.layered {
        lay_over_root()?;
    }
    if let Some(directory) = &request.writable {
        fs::create_dir_all(directory)
            .or_else(|error| if directory.is_dir() { Ok(()) } else { Err(error) })
            .map_err(|e| HostError::new(format!("cannot see {}", directory.display()), e))?;
        file_system("hostfs", directory, MsFlags::empty(), &directory.display().to_string())?;
    }
    seed(request.seed)?;
    for (name, value) in MACHINE_DEFAULTS {
        sysctl::set(name, value)?;
    }
    Netlink::connect()?.set_up("lo", true)?;
    let Some(status) = run(&request)? else { return Ok(None) };
    if let Some(directory) = &request.writable {
        sync();
        umount2(directory, MntFlags::MNT_DETACH).map_err(|e| HostError::new("cannot write everything out", e))?;
    }
    Ok(Some(status))
}

/// The kernel's message that the host has ended a process of its, if there is one. To the program in here that looks like an
/// access to memory that is not there.
fn lost_process() -> Option<String> {
    let mut log = vec![0_u8; LOG_BYTES];
    // SAFETY: the kernel writes at most LOG_BYTES to the buffer.
    let length = unsafe { libc::klogctl(SYSLOG_ACTION_READ_ALL, log.as_mut_ptr().cast(), LOG_BYTES as libc::c_int) };
    log.truncate(usize::try_from(length).unwrap_or(0));
    String::from_utf8_lossy(&log).lines().find_map(lost_process_in)
}

/// Every request to a traced process that is gone fails with ESRCH, and User-Mode Linux says so at level 3, an error.
fn lost_process_in(line: &str) -> Option<String> {
    let message = line.strip_prefix("<3>")?;
    let lost = message.ends_with(&format!("errno = {}", libc::ESRCH));
    lost.then(|| message.split_once("] ").map_or(message, |(_, text)| text).to_owned())
}

fn file_systems() -> Result<()> {
    for (kind, place, options) in
        [("proc", "/proc", ""), ("sysfs", "/sys", ""), ("tmpfs", "/run", "mode=755"), ("devtmpfs", "/dev", "")]
    {
        file_system(kind, Path::new(place), MsFlags::empty(), options)?;
    }
    for place in ["/dev/shm", "/dev/pts", TEMPORARY] {
        fs::create_dir_all(place).map_err(|e| HostError::new(format!("cannot make {place}"), e))?;
    }
    file_system("tmpfs", Path::new("/dev/shm"), MsFlags::empty(), "mode=1777")?;
    file_system("tmpfs", Path::new(TEMPORARY), MsFlags::empty(), "mode=1777")?;
    file_system("devpts", Path::new("/dev/pts"), MsFlags::empty(), "")
}

/// Makes the root a layer over the host's files, which takes whatever is written.
fn lay_over_root() -> Result<()> {
    let root = Path::new(NEW_ROOT);
    let make = |place: &str| fs::create_dir_all(place).map_err(|e| HostError::new(format!("cannot make {place}"), e));
    [LAYER, NEW_ROOT].into_iter().try_for_each(make)?;
    file_system("tmpfs", Path::new(LAYER), MsFlags::empty(), LAYER_OPTIONS)?;
    let (upper, work) = (format!("{LAYER}/upper"), format!("{LAYER}/work"));
    [&upper, &work].into_iter().try_for_each(|place| make(place))?;
    // With redirect_dir a directory of the host's can be renamed.
    let options = format!("lowerdir=/,upperdir={upper},workdir={work},redirect_dir=on");
    file_system("overlay", root, MsFlags::empty(), &options)?;
    for place in ["proc", "sys", "dev"] {
        let (from, to) = (Path::new("/").join(place), root.join(place));
        mount(Some(&from), &to, None::<&str>, MsFlags::MS_MOVE, None::<&str>)
            .map_err(|e| HostError::new(format!("cannot move {}", from.display()), e))?;
    }
    file_system("tmpfs", &root.join("run"), MsFlags::empty(), "mode=755")?;
    // The old root is mounted over the new one at first, and then taken away.
    let failed = |e: nix::Error| HostError::new("cannot change the root", e);
    chdir(root).map_err(failed)?;
    pivot_root(".", ".").map_err(failed)?;
    umount2(".", MntFlags::MNT_DETACH).map_err(failed)?;
    chdir("/").map_err(failed)?;
    [TEMPORARY, OUTPUT].into_iter().try_for_each(make)?;
    file_system("tmpfs", Path::new(TEMPORARY), MsFlags::empty(), "mode=1777")?;
    file_system("tmpfs", Path::new(OUTPUT), MsFlags::empty(), OUTPUT_OPTIONS)
}

fn file_system(kind: &str, place: &Path, flags: MsFlags, options: &str) -> Result<()> {
    mount(Some("none"), place, Some(kind), flags, Some(options))
        .map_err(|e| HostError::new(format!("cannot mount {kind} on {}", place.display()), e))
}

/// Mixes the seed into the kernel's randomness, and has the kernel use it from here on.
fn seed(seed: u64) -> Result<()> {
    let failed = |e: std::io::Error| HostError::new("cannot seed the kernel's randomness", e);
    let mut random = OpenOptions::new().write(true).open("/dev/urandom").map_err(failed)?;
    random.write_all(&seed.to_le_bytes()).map_err(failed)?;
    // SAFETY: the descriptor is open, and the request takes no argument.
    unsafe { request::reseed(random.as_raw_fd()) }.map_err(|e| failed(e.into()))?;
    Ok(())
}

/// Runs the program to its end. Returns its exit status; nothing in the process that runs a cell.
fn run(request: &GuestRequest) -> Result<Option<i32>> {
    let Some(program) = start(request)? else { return Ok(None) };
    let status = wait_for(program).map_err(|e| HostError::new("cannot wait for the program", e))?;
    // Whatever it left behind.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    Ok(Some(status))
}

/// Starts the program, or a copy of this process, in which it returns nothing.
fn start(request: &GuestRequest) -> Result<Option<Pid>> {
    let open = |device: &str| {
        OpenOptions::new().write(true).open(device).map_err(|e| HostError::new(format!("cannot open {device}"), e))
    };
    let (output, errors) = (open("/dev/cell")?, open("/dev/cell-errors")?);
    let (input, mut given) = std::io::pipe().map_err(|e| HostError::new("cannot make a pipe", e))?;
    let child = match request.program.split_first() {
        Some((program, arguments)) => {
            let child = Command::new(program)
                .args(arguments)
                .env_clear()
                .envs(&request.environment)
                .env("TMPDIR", TEMPORARY)
                .current_dir(&request.directory)
                .stdin(input)
                .stdout(output)
                .stderr(errors)
                .spawn()
                .map_err(|e| HostError::new(format!("cannot start {program}"), e).hint("is it there, and readable?"))?;
            Pid::from_raw(child.id() as i32)
        }
        None => {
            // SAFETY: there is one thread.
            match unsafe { fork() }.map_err(|e| HostError::new("cannot copy this process", e))? {
                ForkResult::Parent { child } => child,
                ForkResult::Child => {
                    drop(given);
                    become_cell(request, [input.into(), output.into(), errors.into()])?;
                    return Ok(None);
                }
            }
        }
    };
    // A program that does not read all of it has its reasons.
    let _ = given.write_all(request.input.as_bytes());
    Ok(Some(child))
}

/// Gives this process the streams, the directory and the environment that the request asks for.
fn become_cell(request: &GuestRequest, [input, output, errors]: [OwnedFd; 3]) -> Result<()> {
    let failed = |e: nix::Error| HostError::new("cannot become the cell", e);
    dup2_stdin(input).map_err(failed)?;
    dup2_stdout(output).map_err(failed)?;
    dup2_stderr(errors).map_err(failed)?;
    chdir(&request.directory).map_err(failed)?;
    let environment = request.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in environment.chain([("TMPDIR", TEMPORARY)]) {
        // SAFETY: there is one thread.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

/// Waits for one process, and for those whose parents are gone.
fn wait_for(program: Pid) -> std::io::Result<i32> {
    loop {
        match waitpid(None, None)? {
            WaitStatus::Exited(pid, status) if pid == program => return Ok(status),
            WaitStatus::Signaled(pid, signal, _) if pid == program => return Ok(128 + signal as i32),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_about_a_process_that_is_gone_is_a_lost_process() {
        let lost = "<3>[    0.000032] userspace - PTRACE_GETREGS failed, errno = 3";
        assert_eq!(lost_process_in(lost).as_deref(), Some("userspace - PTRACE_GETREGS failed, errno = 3"));
        // A program may load a segment register with what the processor refuses.
        assert_eq!(lost_process_in("<3>[    0.000032] userspace - ptrace set regs failed, errno = 5"), None);
        assert_eq!(lost_process_in("<6>[    0.000032] a program wrote: errno = 3"), None);
        assert_eq!(lost_process_in(""), None);
    }
}
