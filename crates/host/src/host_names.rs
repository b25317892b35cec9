//! Names of the hosts, which programs find as they find every name of /etc/hosts.

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fs;
use std::io;
use std::net::IpAddr;

/// Where programs look for names before they ask anybody.
const HOSTS: &str = "/etc/hosts";
/// A directory that every Linux has, in whose place the file is written.
const PLACE: &str = "/run";

/// Has the calling thread, and whatever it starts, see an /etc/hosts that begins with `names`. It needs a mount namespace of its own.
///
/// The file lies in a file system in memory, which goes with the last process that sees it.
pub fn name_hosts(names: &[(IpAddr, &str)]) -> io::Result<()> {
    let text = with_names(names, &fs::read_to_string(HOSTS)?);
    let none = None::<&str>;
    // What is mounted on the machine meanwhile is seen here, and nothing of here there.
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
    mount(Some("tmpfs"), PLACE, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some("mode=755,size=1m"))?;
    let file = format!("{PLACE}/hosts");
    let bound =
        fs::write(&file, text).and_then(|()| Ok(mount(Some(file.as_str()), HOSTS, none, MsFlags::MS_BIND, none)?));
    umount2(PLACE, MntFlags::MNT_DETACH)?;
    bound
}

/// The first line with a name counts, so ours come first.
fn with_names(names: &[(IpAddr, &str)], rest: &str) -> String {
    let own = names.iter().map(|(address, name)| format!("{address} {name}\n"));
    own.chain([rest.to_owned()]).collect()
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
}
