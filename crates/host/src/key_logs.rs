//! Key logs: files for programs' TLS secrets, by `SSLKEYLOGFILE` (RFC 9850).
//!
//! Each program has its own, unreadable to others, in a directory that goes with the cell. Whatever ends this process,
//! the same user's next `crosswind` removes a leftover directory: it has the expected name and lock
//! (`crosswind/temporary.py`). If the caller has set the variable, programs inherit it, and their additions to that
//! file are read there.

use crate::error::{HostError, Result};
use crate::regular_files::open_regular;
use crate::user::User;
use nix::fcntl::{Flock, FlockArg};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The environment variable.
pub const VARIABLE: &str = "SSLKEYLOGFILE";

const PREFIX: &str = "crosswind-tmp-";
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const NAME_LENGTH: usize = 8;
const LOCK: &str = ".crosswind-lock";
const ATTEMPTS: usize = 100;
/// Bytes read from a file: secrets for 100,000 connections.
const MOST_BYTES: u64 = 1 << 26;

/// A cell's key logs.
#[derive(Debug)]
pub struct KeyLogs(Place);

#[derive(Debug)]
enum Place {
    /// The caller's file, and its length before.
    Given {
        path: PathBuf,
        from: u64,
    },
    Own {
        directory: PathBuf,
        files: Mutex<u32>,
        _held: Option<Flock<File>>,
    },
}

impl KeyLogs {
    /// The caller's file where there is one, else a new directory.
    pub fn new() -> Result<Self> {
        let given = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        if let Some(path) = given {
            let from = fs::metadata(&path).map_or(0, |about| about.len());
            return Ok(Self(Place::Given { path, from }));
        }
        let failed =
            |cause| HostError::new("cannot make a directory for the keys of programs", cause).hint("set TMPDIR");
        let (directory, held) = new_directory().map_err(failed)?;
        Ok(Self(Place::Own { directory, files: Mutex::new(0), _held: held }))
    }

    /// A file for one more writer; none if it is to use the caller's. `user`: the writer's, if it is another one.
    pub fn add(&self, user: Option<&User>) -> Result<Option<PathBuf>> {
        let Place::Own { directory, files, .. } = &self.0 else { return Ok(None) };
        let mut number = files.lock().unwrap_or_else(PoisonError::into_inner);
        let path = directory.join(format!("{number}.keys"));
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let failed = |cause| HostError::new("cannot make a file for the keys of a program", cause);
        made.map_err(failed)?;
        if let Some(user) = user {
            user.take(&path).map_err(failed)?;
            // To enter it, not to list it.
            fs::set_permissions(directory, Permissions::from_mode(0o711)).map_err(failed)?;
        }
        *number += 1;
        Ok(Some(path))
    }

    /// One more program's environment.
    pub fn environment(&self, user: Option<&User>) -> Result<Vec<(String, OsString)>> {
        Ok(self.add(user)?.map(|path| (VARIABLE.to_owned(), path.into_os_string())).into_iter().collect())
    }

    /// The logs so far. An unreadable file counts as empty.
    pub fn read(&self) -> Vec<Vec<u8>> {
        match &self.0 {
            Place::Given { path, from } => read(path, *from).into_iter().collect(),
            Place::Own { directory, files, .. } => {
                let count = *files.lock().unwrap_or_else(PoisonError::into_inner);
                (0..count).filter_map(|number| read(&directory.join(format!("{number}.keys")), 0).ok()).collect()
            }
        }
    }

    /// Removes everything except the caller's.
    pub fn remove(&self) {
        if let Place::Own { directory, .. } = &self.0 {
            // Leftovers are removed by the next run.
            let _ = fs::remove_dir_all(directory);
        }
    }
}

impl Drop for KeyLogs {
    fn drop(&mut self) {
        self.remove();
    }
}

fn read(path: &PathBuf, from: u64) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A private directory, and its lock, which marks it as in use; none without support for locks.
pub(crate) fn new_directory() -> io::Result<(PathBuf, Option<Flock<File>>)> {
    for _ in 0..ATTEMPTS {
        let mut random = RandomState::new().hash_one(std::process::id());
        let letter = |_| {
            let letter = LETTERS[(random % LETTERS.len() as u64) as usize];
            random /= LETTERS.len() as u64;
            char::from(letter)
        };
        let name: String = PREFIX.chars().chain((0..NAME_LENGTH).map(letter)).collect();
        let directory = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        // Until it is locked, another process may take it for a leftover.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(directory.join(LOCK)) {
            Ok(lock) => return Ok((directory, Flock::lock(lock, FlockArg::LockExclusiveNonblock).ok())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_writer_has_a_file_that_only_its_owner_reads_and_all_go_in_the_end() {
        let directory;
        {
            let (path, held) = new_directory().unwrap();
            let logs = KeyLogs(Place::Own { directory: path.clone(), files: Mutex::new(0), _held: held });
            let [first, second] = [logs.add(None).unwrap().unwrap(), logs.add(None).unwrap().unwrap()];
            assert_ne!(first, second);
            let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!([mode(&path), mode(&first), mode(&second)], [0o700, 0o600, 0o600]);
            fs::write(&second, "a secret\n").unwrap();
            fs::remove_file(&first).unwrap();
            assert_eq!(logs.read(), [b"a secret\n".to_vec()]);
            directory = path;
        }
        assert!(!directory.exists());
    }

    #[test]
    fn of_the_callers_file_only_what_is_new_is_read_and_it_stays() {
        let (place, _held) = new_directory().unwrap();
        let path = place.join("given");
        fs::write(&path, "before\n").unwrap();
        {
            let logs = KeyLogs(Place::Given { path: path.clone(), from: 7 });
            assert_eq!(logs.add(None).unwrap(), None);
            fs::write(&path, "before\nafter\n").unwrap();
            assert_eq!(logs.read(), [b"after\n".to_vec()]);
        }
        assert!(path.exists());
        fs::remove_dir_all(&place).unwrap();
    }
}
