//! Kernel settings of the calling thread's network namespace: set, and read back.

use crate::error::{ErrorKind, HostError, Result};
use std::fs;
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

/// The value of `name` (as in `net.ipv4.tcp_sack`), its parts separated by single spaces.
pub fn get(name: &str) -> Result<String> {
    let text =
        fs::read_to_string(file(name)).map_err(|e| HostError::new(format!("cannot read the sysctl {name}"), e))?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Sets `name` and checks that the kernel took it.
pub fn set(name: &str, value: &str) -> Result<()> {
    fs::write(file(name), value).map_err(|e| HostError::new(format!("cannot set the sysctl {name} to {value}"), e))?;
    let found = get(name)?;
    if found == value {
        return Ok(());
    }
    Err(HostError {
        what: format!("the sysctl {name} was set to {value}"),
        cause: format!("the kernel made it {found}"),
        kind: ErrorKind::Unsupported,
        hint: Some("give a value that this kernel accepts".into()),
    })
}
