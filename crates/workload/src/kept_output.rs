//! How much is kept of what a program writes: its beginning and its end, so that one that writes without end fills no disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How much of the beginning is kept of what is longer than both together.
pub const FIRST_BYTES: u64 = 16 << 20;
/// How much of the end: a report of itself that a client prints at its end may have a million times in it.
pub const LAST_BYTES: u64 = 16 << 20;

/// What stands in the file where `left_out` bytes are missing.
pub fn gap(left_out: u64) -> String {
    format!("\n[{left_out} bytes are left out here]\n")
}

/// What a reader of the result should know of a file from which bytes are missing.
pub fn warning(end: &str, file_name: &str, left_out: u64) -> Option<String> {
    (left_out > 0).then(|| {
        format!(
            "{file_name} has the first {} MiB and the last {} MiB of what the {end} wrote: {left_out} bytes between them are left out",
            FIRST_BYTES >> 20,
            LAST_BYTES >> 20
        )
    })
}

/// Removes the middle of a file that is too long, to which nobody writes any more. Returns how many bytes those were.
pub fn shorten(path: &Path) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let left_out = file.metadata()?.len().saturating_sub(FIRST_BYTES + LAST_BYTES);
    if left_out > 0 {
        let mut last = Vec::with_capacity(LAST_BYTES as usize);
        file.seek(SeekFrom::Start(FIRST_BYTES + left_out))?;
        file.read_to_end(&mut last)?;
        replace_end(&mut file, left_out, [&last, &[]])?;
    }
    Ok(left_out)
}

/// Leaves of a file its beginning, and has a gap and the two parts of its end follow.
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
            assert_eq!(shorten(&path).expect("shortened"), left_out);
            let mark = if left_out > 0 { gap(left_out) } else { String::new() };
            assert!(std::fs::read(&path).expect("read") == [&first[..], mark.as_bytes(), &last].concat());
        }
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(gap(6), "\n[6 bytes are left out here]\n");
    }

    #[test]
    fn a_warning_says_how_much_is_missing_and_where() {
        assert_eq!(warning("client", "client.out", 0), None);
        assert_eq!(
            warning("client", "client.out", 7).as_deref(),
            Some(
                "client.out has the first 16 MiB and the last 16 MiB of what the client wrote: 7 bytes between them are left out"
            )
        );
    }
}
