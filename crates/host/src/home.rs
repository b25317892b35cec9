//! A host's own name, and its own /run and /var/lib: two instances of a program, one on each host, have other pid
//! files, sockets and states. /var/run is a link to /run.
//!
//! Each is a layer over the machine's: reading falls through, and changes go with the cell. /tmp, where people look for
//! their programs' output, is the machine's.

use crate::guest::in_virtual_time;
use crate::host_names::Names;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use nix::unistd::sethostname;
use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Each host's own directories.
const OWN: [&str; 2] = ["/run", "/var/lib"];
/// Their options: in a guest a bound on changes, on a machine half the memory.
const IN_GUEST: &str = "mode=755,size=1g";
const ON_MACHINE: &str = "mode=755";

/// Room for the list of mounts.
const MOUNTINFO_BYTES: usize = 1 << 16;

/// The homes of two hosts, made when they are first asked for.
#[derive(Clone, Debug, Default)]
pub struct Homes(Arc<Mutex<[Option<Arc<Base>>; 2]>>);

/// A host's name and directories, shared by all its programs.
#[derive(Debug)]
struct Base {
    mounts: File,
    name: File,
    shared: Vec<String>,
}

/// A host as some of its programs see it.
#[derive(Clone, Debug)]
pub struct Home {
    mounts: Arc<File>,
    base: Arc<Base>,
    /// Where they begin: entering the home leads away from it.
    directory: CString,
}

impl Homes {
    /// One host's home for programs with these names. `kept`: the machine's directories, wherever they are.
    pub fn home(&self, host: usize, names: &Names, kept: &[PathBuf]) -> io::Result<Home> {
        let base = {
            let mut homes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(base) = &homes[host] {
                Arc::clone(base)
            } else {
                let name = names.hosts[1 - host].1;
                let base = Arc::new(on_a_thread(|| Base::new(name, kept))?);
                homes[host] = Some(Arc::clone(&base));
                base
            }
        };
        let mounts = on_a_thread(|| {
            unshare(CloneFlags::CLONE_FS)?;
            setns(&base.mounts, CloneFlags::CLONE_NEWNS)?;
            unshare(CloneFlags::CLONE_NEWNS)?;
            names.set()?;
            File::open("/proc/thread-self/ns/mnt")
        })?;
        let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let directory = CString::new(directory.as_os_str().as_bytes())?;
        Ok(Home { mounts: Arc::new(mounts), base, directory })
    }
}

impl Home {
    /// Directories it shares with the machine, each with the reason.
    pub fn shared(&self) -> &[String] {
        &self.base.shared
    }

    /// What a process needs to enter it.
    pub(crate) fn door(&self) -> Door {
        Door { mounts: self.mounts.as_raw_fd(), name: self.base.name.as_raw_fd(), directory: self.directory.clone() }
    }
}

/// The way into a home, as numbers, for use between fork and exec.
pub(crate) struct Door {
    mounts: RawFd,
    name: RawFd,
    directory: CString,
}

impl Door {
    /// Moves the calling process and its one thread. Only system calls.
    pub(crate) fn enter(&self) -> io::Result<()> {
        for (file, kind) in [(self.mounts, CloneFlags::CLONE_NEWNS), (self.name, CloneFlags::CLONE_NEWUTS)] {
            // SAFETY: the home outlives the start, and with it the descriptors.
            setns(unsafe { BorrowedFd::borrow_raw(file) }, kind)?;
        }
        // Without its directory the process stays at the root.
        let _ = nix::unistd::chdir(self.directory.as_c_str());
        Ok(())
    }
}

impl Base {
    /// Made by the calling thread, inside from then on.
    fn new(name: &str, kept: &[PathBuf]) -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)?;
        let none = None::<&str>;
        // Mounts on the machine appear here, but not the other way round.
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        sethostname(name)?;
        let mut shared = Vec::new();
        for directory in OWN {
            // Without such a directory nothing is shared.
            let Ok(place) = fs::canonicalize(directory) else { continue };
            if let Err(error) = lay_over(&place, kept) {
                shared.push(format!("{directory} ({error})"));
            }
        }
        Ok(Self {
            mounts: File::open("/proc/thread-self/ns/mnt")?,
            name: File::open("/proc/thread-self/ns/uts")?,
            shared,
        })
    }
}

/// Lays an empty layer over a directory. File systems mounted below it, and kept directories, stay as they are.
fn lay_over(place: &Path, kept: &[PathBuf]) -> io::Result<()> {
    let own: Vec<PathBuf> = kept.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    if let Some(path) = own.iter().find(|path| place.starts_with(path) && path.parent().is_some()) {
        return Err(io::Error::other(format!("{} stays the machine's", path.display())));
    }
    // As many system calls wherever the cell's files are: in virtual time each takes its time.
    let mut mountinfo = String::with_capacity(MOUNTINFO_BYTES);
    File::open("/proc/thread-self/mountinfo")?.read_to_string(&mut mountinfo)?;
    let below: Vec<PathBuf> = mounts_below(place, &mountinfo)
        .into_iter()
        .chain(own.into_iter().filter(|path| path.starts_with(place)))
        .collect();
    // One inside another comes back with it.
    let below: Vec<(&PathBuf, OwnedFd)> = below
        .iter()
        .filter(|path| !below.iter().any(|other| *path != other && path.starts_with(other)))
        .filter_map(|path| Some((path, handle(path).ok()?)))
        .collect();
    let lower = handle(place)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let size = if in_virtual_time() { IN_GUEST } else { ON_MACHINE };
    mount(Some("tmpfs"), place, Some("tmpfs"), flags, Some(size))?;
    let layered = overlay(place, &lower);
    if let Err(error) = layered {
        nix::mount::umount2(place, nix::mount::MntFlags::MNT_DETACH)?;
        return Err(error);
    }
    for (path, file) in &below {
        let from = by_number(file);
        // An error hides it, as if it were not mounted.
        let _ =
            mount(Some(from.as_str()), path.as_path(), None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>);
    }
    Ok(())
}

/// Mounts an overlay on `place`, over the memory mounted there: `lower`, with room for changes.
fn overlay(place: &Path, lower: &OwnedFd) -> io::Result<()> {
    let [upper, work] = ["upper", "work"].map(|name| place.join(name));
    [&upper, &work].into_iter().try_for_each(fs::create_dir)?;
    let about = fs::metadata(by_number(lower))?;
    fs::set_permissions(&upper, about.permissions())?;
    let [upper, work] = [handle(&upper)?, handle(&work)?];
    let options = format!("lowerdir={},upperdir={},workdir={}", by_number(lower), by_number(&upper), by_number(&work));
    let try_with = |options: &str| mount(Some("overlay"), place, Some("overlay"), MsFlags::empty(), Some(options));
    // Within a user namespace its notes are attributes for users.
    match try_with(&options) {
        Err(Errno::EPERM | Errno::EINVAL | Errno::EOPNOTSUPP) => Ok(try_with(&format!("{options},userxattr"))?),
        other => Ok(other?),
    }
}

/// The mount points below a directory, as /proc/PID/mountinfo has them (proc(5)).
fn mounts_below(place: &Path, mountinfo: &str) -> Vec<PathBuf> {
    let points = mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped);
    let mut below: Vec<PathBuf> = points.filter(|point| point != place && point.starts_with(place)).collect();
    below.sort_unstable();
    below.dedup();
    below
}

/// In a mount point, octal numbers stand for blanks and backslashes.
fn unescaped(text: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    PathBuf::from(escapes.iter().fold(text.to_owned(), |text, (code, meaning)| text.replace(code, meaning)))
}

/// A descriptor for a file or a directory, the same under later mounts.
fn handle(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?)
}

fn by_number(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// A thread enters namespaces alone: this one stays where it is.
fn on_a_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_those_below_a_directory_each_once() {
        let mountinfo = "22 27 0:21 / /proc rw - proc proc rw\n30 27 0:27 / /run/user/1000 rw - tmpfs tmpfs rw\n\
                         31 27 0:28 / /run/a\\040b rw - tmpfs tmpfs rw\n32 27 0:29 / /run rw - tmpfs tmpfs rw\n\
                         33 27 0:30 / /runner rw - tmpfs tmpfs rw\n34 30 0:31 / /run/user/1000 rw - tmpfs tmpfs rw\n";
        let found = mounts_below(Path::new("/run"), mountinfo);
        assert_eq!(found, [Path::new("/run/a b"), Path::new("/run/user/1000")]);
    }
}
