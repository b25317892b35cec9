//! Names for programs: the hosts' in /etc/hosts, and a resolver on the path.

use crate::guest::in_virtual_time;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Where programs look for names before they ask anybody.
const HOSTS: &str = "/etc/hosts";
/// Whom they ask.
const RESOLVER: &str = "/etc/resolv.conf";
/// Their first lookup: the machine's own may name a service that bypasses the network.
const ORDER: &str = "/etc/nsswitch.conf";
/// A directory on every Linux, replaced by the files.
const PLACE: &str = "/run";

/// The visible names.
#[derive(Clone, Debug)]
pub struct Names {
    /// Hosts.
    pub hosts: [(IpAddr, &'static str); 2],
    /// The resolver for all other names; without one, they do not resolve.
    pub resolver: Option<IpAddr>,
    /// In virtual time, a directory hidden from programs: the cell's own.
    pub hidden: Option<PathBuf>,
}

impl Names {
    /// Makes them visible to the calling thread and its children. It needs its own mount namespace.
    ///
    /// The files are in an in-memory file system, which goes with the last process that sees it.
    pub(crate) fn set(&self) -> io::Result<()> {
        let hosts = with_names(&self.hosts, &fs::read_to_string(HOSTS)?);
        let mut files = vec![(PathBuf::from(HOSTS), hosts)];
        if let Some(place) = target_of(RESOLVER)? {
            files.push((place, resolver_text(self.resolver)));
        }
        if let Ok(order) = fs::read_to_string(ORDER) {
            files.push((ORDER.into(), files_then_dns(&order)));
        }
        let none = None::<&str>;
        // Mounts on the machine appear here, but not the other way round.
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        // Before the next mount, which could hide the target of the resolver's link.
        let opened: io::Result<Vec<_>> = files.iter().map(|(place, _)| Ok((place, fs::File::open(place)?))).collect();
        let opened = opened?;
        mount(Some("tmpfs"), PLACE, Some("tmpfs"), flags, Some("mode=755,size=1m"))?;
        let bound = files.iter().zip(&opened).enumerate().try_for_each(|(number, ((_, text), (_, target)))| {
            let file = format!("{PLACE}/{number}");
            fs::write(&file, text)?;
            let target = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(target));
            Ok(mount(Some(file.as_str()), target.as_str(), none, MsFlags::MS_BIND, none)?)
        });
        umount2(PLACE, MntFlags::MNT_DETACH)?;
        if let Some(directory) = self.hidden.as_ref().filter(|_| in_virtual_time()) {
            mount(Some("tmpfs"), directory, Some("tmpfs"), flags | MsFlags::MS_RDONLY, Some("mode=755,size=4k"))?;
        }
        bound
    }
}

/// A path's target file; none if absent. In virtual time, with files of this cell alone, one is made.
fn target_of(path: &str) -> io::Result<Option<PathBuf>> {
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::canonicalize(path) {
        Ok(place) => return Ok(Some(place)),
        Err(error) if is_missing(&error) && in_virtual_time() => {}
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    }
    // A link may lead to an absent directory, as /run/systemd/resolve.
    let link = fs::read_link(path).map_or_else(|_| path.into(), |to| Path::new("/etc").join(to));
    if let Some(directory) = link.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::File::create(&link)?;
    fs::canonicalize(path).map(Some)
}

/// The first line with a name counts, so ours come first.
fn with_names(names: &[(IpAddr, &str)], rest: &str) -> String {
    let own = names.iter().map(|(address, name)| format!("{address} {name}\n"));
    own.chain([rest.to_owned()]).collect()
}

/// Without a resolver, programs ask their own host, where nobody listens: the failure is immediate.
fn resolver_text(resolver: Option<IpAddr>) -> String {
    resolver.map_or_else(|| "# no resolver\n".into(), |address| format!("nameserver {address}\n"))
}

/// A service order with host names from the file and then from the resolver.
fn files_then_dns(order: &str) -> String {
    let line = |line: &str| {
        let is_hosts = line.trim_start().starts_with("hosts:");
        if is_hosts { "hosts: files dns\n".into() } else { format!("{line}\n") }
    };
    order.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_names_come_first() {
        let names = [("198.18.0.2".parse().unwrap(), "server"), ("2001:2::2".parse().unwrap(), "six")];
        assert_eq!(
            with_names(&names, "127.0.0.1 localhost server\n"),
            "198.18.0.2 server\n2001:2::2 six\n127.0.0.1 localhost server\n"
        );
    }

    #[test]
    fn a_resolver_is_the_only_one_and_comes_after_the_file() {
        assert_eq!(resolver_text(Some("2001:2::2".parse().unwrap())), "nameserver 2001:2::2\n");
        assert!(!resolver_text(None).contains("nameserver"));
        let order = "passwd: files\nhosts:  mymachines resolve [!UNAVAIL=return] files dns\n";
        assert_eq!(files_then_dns(order), "passwd: files\nhosts: files dns\n");
    }
}
