//! Becomes root of a user namespace unless the process is root already.

use crate::error::{HostError, Result};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::fs;

/// How the process may make namespaces and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Root, or sudo.
    Root,
    /// Root of its own user namespace.
    UserNamespace,
}

/// Makes sure the process may make network namespaces. Call it before any thread is started.
pub fn acquire() -> Result<Privilege> {
    if has_net_admin() {
        return Ok(Privilege::Root);
    }
    let (uid, gid) = (geteuid(), getegid());
    let hint = "run with sudo, or allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)";
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| HostError::new("cannot make a user namespace", e).hint(hint))?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|e| HostError::new(format!("cannot write {file}"), e).hint(hint))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// Whether the process has `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, needed for namespaces and devices.
fn has_net_admin() -> bool {
    has_capabilities((1 << 12) | (1 << 21))
}

/// Whether all capabilities in the mask (linux/capability.h) are effective.
pub(crate) fn has_capabilities(mask: u64) -> bool {
    fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
            u64::from_str_radix(line.trim(), 16).ok()
        })
        .is_some_and(|capabilities| capabilities & mask == mask)
}
