//! Files read by path: a named pipe or device makes nobody wait forever.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A regular file, opened for reading. An error also where something else is there.
pub fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

/// A regular file's content. An error also if larger than `most_bytes`.
pub fn read_regular(path: impl AsRef<Path>, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    if file.metadata()?.len() > most_bytes {
        return Err(io::Error::other(format!("it has more than {most_bytes} bytes")));
    }
    let mut bytes = Vec::new();
    file.take(most_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}
