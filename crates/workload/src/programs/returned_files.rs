//! Programs' files in `{output}`, which come back with the cell.
//!
//! On the machine's clock the directory is the cell's. In virtual time it is in the guest's memory, with the guest's
//! times and any owner; its files are copied when the programs have ended. Only files and directories come back: a
//! link, a device or a FIFO could lead a reader of the run anywhere, or block him for ever.

use super::PerEnd;
use crate::WorkloadError;
use crate::context::Context;
use crate::warning::Warning;
use crosswind_host::guest;
use crosswind_host::{HostError, User};
use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory's placeholder in an argument.
pub const OUTPUT_WORD: &str = "{output}";
/// Its name in the cell's directory.
const NAME: &str = "output";
/// Directories within directories: deeper ones do not come back.
const DEEPEST: usize = 64;
/// Names in a warning.
const NAMED: usize = 3;

/// The directory for a cell's programs' files.
pub struct ReturnedFiles {
    /// Where programs write them, and where they are kept; none where no program asks.
    places: Option<(PathBuf, PathBuf)>,
}

impl ReturnedFiles {
    /// Makes the directory, where an argument names it.
    pub fn new<'a>(
        context: &Context<'_>,
        arguments: impl IntoIterator<Item = &'a String>,
        users: &PerEnd<Option<User>>,
    ) -> Result<Self, WorkloadError> {
        if !is_asked_for(arguments) {
            return Ok(Self { places: None });
        }
        let Some(directory) = context.output else {
            return Err(nowhere_to_return_to());
        };
        let kept = directory.join(NAME);
        make_directory(&kept).map_err(|e| HostError::new(format!("cannot make {}", kept.display()), e))?;
        if !context.virtual_time {
            give_away(&kept, users).map_err(|e| HostError::new(format!("cannot give away {}", kept.display()), e))?;
        }
        let written = if context.virtual_time { PathBuf::from(guest::OUTPUT) } else { absolute(&kept) };
        Ok(Self { places: Some((written, kept)) })
    }

    /// Its path in an argument.
    pub fn place(&self) -> String {
        self.places.as_ref().map_or_else(String::new, |(written, _)| written.display().to_string())
    }

    /// Brings the files back, once no program writes any more. Returns notes for readers of the result.
    pub fn bring(self) -> Result<Option<Warning>, WorkloadError> {
        let Some((written, kept)) = self.places else { return Ok(None) };
        let mut left = Vec::new();
        let done =
            if written == absolute(&kept) { clean(&kept, &mut left, 0) } else { copy(&written, &kept, &mut left, 0) };
        done.map_err(|e| HostError::new("cannot bring back the files in {output}", e))?;
        Ok(unlike_files(&left))
    }
}

/// Whether an argument names the directory.
pub fn is_asked_for<'a>(arguments: impl IntoIterator<Item = &'a String>) -> bool {
    arguments.into_iter().any(|argument| argument.contains(OUTPUT_WORD))
}

/// The error for one without a place in the cell.
pub fn nowhere_to_return_to() -> WorkloadError {
    let cause = "the cell has no output.directory, where its files would come to";
    HostError::unsupported("cannot fill in {output}", cause).hint("name one").into()
}

/// Removes a peer's leftovers other than files and directories.
pub fn clean_directory(directory: &Path) -> Result<Option<Warning>, WorkloadError> {
    let mut left = Vec::new();
    clean(directory, &mut left, 0).map_err(|e| HostError::new(format!("cannot read {}", directory.display()), e))?;
    Ok(unlike_files(&left))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// A directory readable by its owner.
fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(path)
}

/// Lets both ends' users write into a directory.
fn give_away(directory: &Path, users: &PerEnd<Option<User>>) -> io::Result<()> {
    match (&users.client, &users.server) {
        (None, None) => Ok(()),
        // Root needs no rights.
        (Some(user), None) | (None, Some(user)) => user.take(directory),
        (Some(client), Some(server)) if client == server => server.take(directory),
        (Some(client), Some(server)) => {
            server.share(directory, client)?;
            fs::set_permissions(directory, Permissions::from_mode(0o775))
        }
    }
}

/// Copies files and directories, and notes the rest. Copies belong to the cell's user, and to nobody's group.
fn copy(from: &Path, to: &Path, left: &mut Vec<String>, depth: usize) -> io::Result<()> {
    for entry in entries(from)? {
        let (source, target) = (from.join(&entry), to.join(&entry));
        let about = source.symlink_metadata()?;
        if about.is_dir() && depth < DEEPEST {
            make_directory(&target)?;
            copy(&source, &target, left, depth + 1)?;
        } else if about.is_file() {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&target)?;
            io::copy(&mut fs::File::open(&source)?, &mut file)?;
        } else {
            left.push(described(&source, &about));
        }
    }
    Ok(())
}

/// Removes everything but files and directories, and lets the owner read the rest.
fn clean(directory: &Path, left: &mut Vec<String>, depth: usize) -> io::Result<()> {
    for entry in entries(directory)? {
        let path = directory.join(&entry);
        let about = path.symlink_metadata()?;
        if about.is_dir() && depth < DEEPEST {
            permit(&path, &about, 0o700)?;
            clean(&path, left, depth + 1)?;
        } else if about.is_file() {
            // A hard-linked file keeps its permissions.
            if about.nlink() == 1 {
                permit(&path, &about, 0o600)?;
            }
        } else {
            if about.is_dir() {
                fs::remove_dir_all(&path)?;
            } else {
                fs::remove_file(&path)?;
            }
            left.push(described(&path, &about));
        }
    }
    Ok(())
}

/// Gives the owner the rights to read and change it, and takes the right to run it as somebody else.
fn permit(path: &Path, about: &Metadata, owner: u32) -> io::Result<()> {
    let mode = about.permissions().mode() & 0o7777;
    let wanted = mode & 0o777 | owner;
    if wanted == mode { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(wanted)) }
}

/// The names in a directory, in the same order every time.
fn entries(directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> = fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

fn described(path: &Path, about: &Metadata) -> String {
    let kind = about.file_type();
    let what = if kind.is_symlink() {
        "a link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_dir() {
        "a directory that is too deep"
    } else {
        "a device"
    };
    // A name is any bytes but two.
    let name: String = path.file_name().unwrap_or_default().to_string_lossy().escape_debug().take(80).collect();
    format!("{name} ({what})")
}

fn unlike_files(left: &[String]) -> Option<Warning> {
    let more = left.len().saturating_sub(NAMED);
    let names = left[..left.len() - more].join(", ");
    (!left.is_empty()).then(|| Warning::files_left(&names, more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn directory(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("crosswind-returned-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.join("from/inner")).expect("directories");
        place
    }

    fn fill(from: &Path) {
        fs::write(from.join("inner/file"), "kept").expect("written");
        fs::set_permissions(from.join("inner/file"), Permissions::from_mode(0o4400)).expect("changed");
        fs::set_permissions(from.join("inner"), Permissions::from_mode(0o500)).expect("changed");
        symlink("/etc/passwd", from.join("link")).expect("a link");
        symlink("/etc", from.join("directory")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(from.join("fifo")).status().expect("run");
        assert!(made.success());
        fs::write(from.join("a\nb\u{202e}"), "").expect("written");
    }

    fn check(to: &Path, left: &[String]) {
        let names = entries(to).expect("read");
        assert_eq!(names, ["a\nb\u{202e}", "inner"]);
        assert_eq!(fs::read_to_string(to.join("inner/file")).expect("read"), "kept");
        let mode = |name: &str| fs::metadata(to.join(name)).expect("there").permissions().mode() & 0o7777;
        assert_eq!((mode("inner") & 0o700, mode("inner/file") & 0o7600), (0o700, 0o600));
        assert_eq!(left, ["directory (a link)", "fifo (a FIFO)", "link (a link)"]);
    }

    #[test]
    fn only_files_and_directories_come_back() {
        let place = directory("copied");
        let (from, to) = (place.join("from"), place.join("to"));
        fill(&from);
        make_directory(&to).expect("made");
        let mut left = Vec::new();
        copy(&from, &to, &mut left, 0).expect("copied");
        check(&to, &left);
        left.clear();
        clean(&from, &mut left, 0).expect("cleaned");
        check(&from, &left);
        fs::remove_dir_all(&place).expect("removed");
    }

    #[test]
    fn what_does_not_come_back_is_named_in_one_line() {
        let said = |left: &[String]| unlike_files(left).map(|warning| warning.text);
        assert_eq!(said(&[]), None);
        let two = said(&["a (a link)".into(), "b (a FIFO)".into()]).expect("words");
        assert!(two.ends_with("which these are not: a (a link), b (a FIFO)"));
        let many: Vec<String> = (0..5).map(|number| format!("{number} (a link)")).collect();
        assert!(said(&many).expect("words").ends_with("2 (a link) and 2 more"));
    }
}
