//! The tail of a program's output, for messages about its end.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes examined at the end of a program's output.
pub const TAIL_BYTES: u64 = 4096;
/// Lines quoted, and characters of each.
const LINES: usize = 3;
const LINE_CHARACTERS: usize = 200;

/// The output tail of one end's program (`client`, `server`) in `directory`: its `error: ...` and `hint: ...`, or the
/// last lines of its standard error, or of its standard output if it wrote no error. Empty without any.
pub fn output_tail(directory: Option<&Path>, end: &str) -> String {
    let Some(directory) = directory else { return String::new() };
    ["err", "out"]
        .into_iter()
        .map(|kind| words_of(&end_of(&directory.join(format!("{end}.{kind}")))))
        .find(|words| !words.is_empty())
        .unwrap_or_default()
}

/// A file's tail, likewise.
pub fn tail_of(path: &Path) -> String {
    words_of(&end_of(path))
}

/// A file's end; empty if unreadable.
fn end_of(path: &Path) -> String {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let length = file.metadata().map_or(0, |about| about.len());
        if file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).is_ok() {
            // A partial read is better than nothing.
            let _ = file.take(TAIL_BYTES).read_to_end(&mut bytes);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Likewise for a text.
pub fn words_of(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(printable).filter(|line| !line.is_empty()).collect();
    let marked = |mark: &str| lines.iter().rev().find_map(|line| line.strip_prefix(mark));
    if let Some(error) = marked("error: ") {
        return marked("hint: ").map_or_else(|| error.to_owned(), |hint| format!("{error} ({hint})"));
    }
    lines[lines.len().saturating_sub(LINES)..].join(" | ")
}

fn printable(line: &str) -> String {
    line.trim().chars().filter(|character| !character.is_control()).take(LINE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_quoted_without_control_characters() {
        assert_eq!(words_of(""), "");
        assert_eq!(words_of("one\ntwo\n\nthree \nfour\x1b[31m\x07\n"), "two | three | four[31m");
        assert_eq!(words_of(&"x".repeat(1000)), "x".repeat(200));
    }

    #[test]
    fn an_error_and_its_hint_are_all_of_it() {
        assert_eq!(words_of("error: no library\nhint: pip install it\nbye\n"), "no library (pip install it)");
        assert_eq!(words_of("a\nerror: no library\n"), "no library");
    }

    #[test]
    fn errors_go_before_output_and_only_the_end_of_a_file_is_read() {
        let directory = std::env::temp_dir().join(format!("crosswind-last-words-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).expect("a file");
        assert_eq!(output_tail(Some(&directory), "client"), "");
        write("client.out", "said\n");
        assert_eq!(output_tail(Some(&directory), "client"), "said");
        write("client.err", &format!("{}\nlast\n", "y\n".repeat(5000)));
        assert_eq!(output_tail(Some(&directory), "client"), "y | y | last");
        assert_eq!(
            (output_tail(Some(&directory), "server"), output_tail(None, "client")),
            (String::new(), String::new())
        );
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
