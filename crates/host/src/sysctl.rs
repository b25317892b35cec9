//! Kernel settings of the calling thread's network namespace: set, and read back.

use crate::error::{ErrorKind, HostError, Result};
use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

/// Bytes; no setting's value is as long.
const LARGEST: usize = 4096;

fn file(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name.replace('.', "/"))
}

/// The value of `name` (as in `net.ipv4.tcp_sack`), its parts separated by single spaces.
pub fn get(name: &str) -> Result<String> {
    let failed = |e| HostError::new(format!("cannot read the sysctl {name}"), e);
    // The kernel gives a value in one piece: asking for the file's size and for its end would double the calls.
    let mut bytes = [0; LARGEST];
    let length = File::open(file(name)).and_then(|mut file| file.read(&mut bytes)).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
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
