//! Another user for a program.

use crate::error::{HostError, Result};
use nix::unistd::{Gid, Uid, chown, getgrouplist, setgid, setgroups, setuid};
use std::ffi::{CString, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// A user with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    home: PathBuf,
}

impl User {
    /// The user with this name.
    pub fn find(name: &str) -> Result<Self> {
        let what = || format!("cannot run programs as {name}");
        let found = nix::unistd::User::from_name(name).map_err(|e| HostError::new(what(), e))?;
        let Some(user) = found else {
            return Err(HostError::unsupported(what(), "there is no such user").hint("`getent passwd` lists them"));
        };
        // Users' names have no zero in them.
        let text = CString::new(name).unwrap_or_default();
        let groups = getgrouplist(&text, user.gid).map_err(|e| HostError::new(what(), e))?;
        Ok(Self { name: name.to_owned(), uid: user.uid, gid: user.gid, groups, home: user.dir })
    }

    /// What a login would set.
    pub fn environment(&self) -> Vec<(String, OsString)> {
        let variable = |name: &str, value: &std::ffi::OsStr| (name.to_owned(), value.to_owned());
        vec![
            variable("HOME", self.home.as_os_str()),
            variable("LOGNAME", self.name.as_ref()),
            variable("USER", self.name.as_ref()),
        ]
    }

    /// Gives the user a file or a directory.
    pub fn take(&self, path: &Path) -> io::Result<()> {
        Ok(chown(path, Some(self.uid), Some(self.gid))?)
    }

    /// Likewise, and another user's group.
    pub fn share(&self, path: &Path, other: &Self) -> io::Result<()> {
        Ok(chown(path, Some(self.uid), Some(other.gid))?)
    }

    /// Makes the calling process the user's. Only system calls: it runs between fork and exec.
    pub(crate) fn assume(&self) -> io::Result<()> {
        setgroups(&self.groups)?;
        setgid(self.gid)?;
        Ok(setuid(self.uid)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_home_and_an_unknown_one_is_named() {
        let root = User::find("root").expect("root");
        assert_eq!(root.environment()[0], ("HOME".into(), "/root".into()));
        let error = User::find("no-such-user").expect_err("none");
        assert_eq!(error.to_string(), "cannot run programs as no-such-user: there is no such user");
    }
}
