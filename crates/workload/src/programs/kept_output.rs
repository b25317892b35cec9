//! A limit on programs' kept output: beginning and end, so that endless output fills no disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes kept from the beginning of output longer than both together.
pub const FIRST_BYTES: u64 = 16 << 20;
/// Bytes kept from the end: a client's final report may have a million times in it.
pub const LAST_BYTES: u64 = 16 << 20;

/// The file's text in place of `left_out` missing bytes.
pub fn gap(left_out: u64) -> String {
    format!("\n[{left_out} bytes are left out here]\n")
}

/// A file for a program's output.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)
}

/// Makes sure that `path` is this file, now without writers: a program may have removed or replaced it.
pub fn put_back(path: &Path, file: &mut File) -> io::Result<()> {
    let about = file.metadata()?;
    match path.symlink_metadata() {
        Ok(found) if (found.dev(), found.ino()) == (about.dev(), about.ino()) => return Ok(()),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.rewind()?;
    io::copy(file, &mut OpenOptions::new().write(true).create_new(true).open(path)?)?;
    Ok(())
}

/// Removes the middle of a too long file without writers. Returns the number of bytes removed.
pub fn shorten(file: &mut File) -> io::Result<u64> {
    let left_out = file.metadata()?.len().saturating_sub(FIRST_BYTES + LAST_BYTES);
    if left_out > 0 {
        let mut last = Vec::with_capacity(LAST_BYTES as usize);
        file.seek(SeekFrom::Start(FIRST_BYTES + left_out))?;
        file.read_to_end(&mut last)?;
        replace_end(file, left_out, [&last, &[]])?;
    }
    Ok(left_out)
}

/// Keeps a file's beginning, and appends a gap and the two parts of its end.
pub fn replace_end(file: &mut File, left_out: u64, last: [&[u8]; 2]) -> io::Result<()> {
    file.set_len(FIRST_BYTES)?;
    file.seek(SeekFrom::Start(FIRST_BYTES))?;
    file.write_all(gap(left_out).as_bytes())?;
    last.into_iter().try_for_each(|part| file.write_all(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_loses_its_middle() {
        let path = std::env::temp_dir().join(format!("crosswind-kept-{}", std::process::id()));
        let (first, last) = (vec![b'a'; FIRST_BYTES as usize], vec![b'z'; LAST_BYTES as usize]);
        for (middle, left_out) in [(&b""[..], 0), (b"m", 1), (b"middle", 6)] {
            std::fs::write(&path, [&first[..], middle, &last].concat()).expect("written");
            let mut file = OpenOptions::new().read(true).write(true).open(&path).expect("opened");
            assert_eq!(shorten(&mut file).expect("shortened"), left_out);
            let mark = if left_out > 0 { gap(left_out) } else { String::new() };
            assert!(std::fs::read(&path).expect("read") == [&first[..], mark.as_bytes(), &last].concat());
        }
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(gap(6), "\n[6 bytes are left out here]\n");
    }

    #[test]
    fn a_file_that_was_replaced_is_put_back() {
        let directory = std::env::temp_dir().join(format!("crosswind-put-back-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (path, elsewhere) = (directory.join("client.out"), directory.join("elsewhere"));
        let replacements: [fn(&Path, &Path); 5] = [
            |_, _| {},
            |path, _| std::fs::remove_file(path).expect("removed"),
            |path, other| std::fs::rename(path, other).and_then(|()| std::fs::write(path, "another")).expect("moved"),
            |path, _| std::fs::remove_file(path).and_then(|()| std::fs::create_dir(path)).expect("a directory"),
            |path, other| {
                std::fs::remove_file(path).and_then(|()| std::os::unix::fs::symlink(other, path)).expect("a link");
            },
        ];
        for replace in replacements {
            std::fs::write(&elsewhere, "elsewhere").expect("written");
            let mut file = create(&path).expect("created");
            file.write_all(b"said").expect("written");
            replace(&path, &elsewhere);
            put_back(&path, &mut file).expect("put back");
            assert_eq!(std::fs::read(&path).expect("read"), b"said");
        }
        assert_eq!(std::fs::read(&elsewhere).expect("read"), b"elsewhere", "a link is not followed");
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
