//! Files for programs alone, such as a private key, in a directory removed with the cell.

use crate::error::{HostError, Result};
use crate::key_logs::new_directory;
use crate::user::User;
use nix::fcntl::Flock;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A directory for its owner alone.
#[derive(Debug)]
pub struct PrivateFiles {
    directory: PathBuf,
    owner: Option<User>,
    _held: Option<Flock<File>>,
}

impl PrivateFiles {
    /// An empty one, for this process's user or for `owner`.
    pub fn new(owner: Option<&User>) -> Result<Self> {
        let failed =
            |cause| HostError::new("cannot make a directory for the files of programs", cause).hint("set TMPDIR");
        let (directory, held) = new_directory().map_err(failed)?;
        let made = Self { directory, owner: owner.cloned(), _held: held };
        made.give(&made.directory)?;
        Ok(made)
    }

    /// Writes a file for the owner alone. Returns its path.
    pub fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.directory.join(name);
        let failed = |cause| HostError::new(format!("cannot write {}", path.display()), cause);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all(content.as_bytes()).map_err(failed)?;
        self.give(&path)?;
        Ok(path)
    }

    fn give(&self, path: &Path) -> Result<()> {
        let Some(owner) = &self.owner else { return Ok(()) };
        owner.take(path).map_err(|cause| HostError::new(format!("cannot give away {}", path.display()), cause))
    }
}

impl Drop for PrivateFiles {
    fn drop(&mut self) {
        // Leftovers are removed by the next run.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
