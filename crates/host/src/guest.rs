//! The first process of a guest: a kernel on a clock of its own (kernel/README.md) that runs one program and ends.
//!
//! It makes what programs expect of a system, starts the program with the host's input and output, and says at the end
//! with which status the program ended. The host's files are there as they are, read-only; one directory can be written.

use crate::error::{HostError, Result};
use crate::netlink::Netlink;
use crate::sysctl;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, sync};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The option that makes the cell binary a guest's first process.
pub const GUEST: &str = "--guest";

/// How virtual time calls itself.
const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const VIRTUAL_CLOCK: &str = "time-travel-clock";

/// Where programs may keep temporary files.
const TEMPORARY: &str = "/run/tmp";

/// What the kernel would derive from the size of a machine's memory: as Linux 6.12 has it from 4 GB on.
const MACHINE_DEFAULTS: [(&str, &str); 3] = [
    ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
    ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
    ("net.ipv4.tcp_mem", "190000 254000 380000"),
];

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
}

/// Whether this process runs in virtual time.
pub fn in_virtual_time() -> bool {
    fs::read_to_string(CLOCK).is_ok_and(|name| name.trim() == VIRTUAL_CLOCK)
}

/// Does all that a guest does, and switches it off.
pub fn be_guest() -> ! {
    let (status, error) = match serve() {
        Ok(status) => (status, None),
        Err(error) => (1, Some(error.to_string())),
    };
    let line = serde_json::to_string(&GuestEnded { status, error }).unwrap_or_default();
    if let Ok(mut host) = OpenOptions::new().write(true).open("/dev/cell") {
        let _ = writeln!(host, "{line}");
    }
    let _ = reboot(RebootMode::RB_POWER_OFF);
    unreachable!("a guest that is switched off does not go on");
}

fn serve() -> Result<i32> {
    file_systems()?;
    let mut text = String::new();
    let mut host = File::open("/dev/cell").map_err(|e| HostError::new("cannot open /dev/cell", e))?;
    host.read_to_string(&mut text).map_err(|e| HostError::new("cannot read what to do", e))?;
    let request: GuestRequest =
        serde_json::from_str(&text).map_err(|e| HostError::unsupported("cannot read what to do", e.to_string()))?;
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
    let status = run(&request)?;
    if let Some(directory) = &request.writable {
        sync();
        umount2(directory, MntFlags::MNT_DETACH).map_err(|e| HostError::new("cannot write everything out", e))?;
    }
    Ok(status)
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

/// Runs the program to its end. Returns its exit status.
fn run(request: &GuestRequest) -> Result<i32> {
    let own = ["/proc/self/exe".to_owned()];
    let words = if request.program.is_empty() { &own[..] } else { &request.program };
    let errors = |what: &'static str| move |e: std::io::Error| HostError::new(what, e);
    let open = |device: &str| {
        OpenOptions::new().write(true).open(device).map_err(|e| HostError::new(format!("cannot open {device}"), e))
    };
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .env_clear()
        .envs(&request.environment)
        .env("TMPDIR", TEMPORARY)
        .current_dir(&request.directory)
        .stdin(Stdio::piped())
        .stdout(open("/dev/cell")?)
        .stderr(open("/dev/cell-errors")?)
        .spawn()
        .map_err(|e| HostError::new(format!("cannot start {}", words[0]), e).hint("is it there, and readable?"))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read all of it has its reasons.
        let _ = input.write_all(request.input.as_bytes());
    }
    let status = wait_for(Pid::from_raw(child.id() as i32)).map_err(errors("cannot wait for the program"))?;
    // Whatever it left behind.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    Ok(status)
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
