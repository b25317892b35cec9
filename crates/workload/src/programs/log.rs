//! A program's output to a pipe: kept in a file up to a limit, with its end in memory for messages.

use super::kept_output::{FIRST_BYTES, LAST_BYTES, create, put_back, replace_end};
use super::output_tail::{TAIL_BYTES, words_of};
use super::readiness::LineSearch;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

const CHUNK: usize = 64 * 1024;

/// A program's stream, read to its end by a separate thread.
#[derive(Debug)]
pub struct Log(JoinHandle<Written>);

/// A text to be found in a line on any stream.
#[derive(Debug)]
pub struct LogSearch {
    text: Vec<u8>,
    found: AtomicBool,
}

impl LogSearch {
    /// Not found yet.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), found: AtomicBool::new(false) }
    }

    /// The text.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether a line had it.
    pub fn is_found(&self) -> bool {
        self.found.load(Ordering::Acquire)
    }
}

/// A program's output on a stream.
#[derive(Debug, Default)]
pub struct Written {
    /// Its last words; empty without any.
    pub words: String,
    /// How many bytes the file has not got.
    pub left_out: u64,
}

impl Log {
    /// Reads `stream` into the file at `path`, if there is one, and searches it.
    pub fn start(
        stream: impl Read + Send + 'static,
        path: Option<PathBuf>,
        search: Option<Arc<LogSearch>>,
    ) -> std::io::Result<Self> {
        let file = path.as_deref().map(create).transpose()?;
        let search = search.map(|search| (search, LineSearch::default()));
        let reading = Reading { path, file, tail: Vec::new(), last: VecDeque::new(), written: 0, search };
        let reader = std::thread::Builder::new().name("log".into()).spawn(move || reading.run(stream))?;
        Ok(Self(reader))
    }

    /// The output, once all its writers have ended.
    pub fn end(self) -> Written {
        self.0.join().unwrap_or_default()
    }
}

struct Reading {
    path: Option<PathBuf>,
    file: Option<File>,
    /// Its last words.
    tail: Vec<u8>,
    /// The end of the bytes after the first ones.
    last: VecDeque<u8>,
    written: u64,
    search: Option<(Arc<LogSearch>, LineSearch)>,
}

impl Reading {
    fn run(mut self, mut stream: impl Read) -> Written {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            self.take(&buffer[..count]);
        }
        let left_out = if self.file.is_some() { self.written.saturating_sub(FIRST_BYTES + LAST_BYTES) } else { 0 };
        if let Some(file) = self.file.as_mut().filter(|_| left_out > 0) {
            let (one, other) = self.last.as_slices();
            // A full disk shows in the files needed for the result.
            let _ = replace_end(file, left_out, [one, other]);
        }
        if let (Some(file), Some(path)) = (&mut self.file, &self.path) {
            let _ = put_back(path, file);
        }
        Written { words: words_of(&String::from_utf8_lossy(&self.tail)), left_out }
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some((search, lines)) = &mut self.search
            && lines.finds(&search.text, bytes)
        {
            search.found.store(true, Ordering::Release);
            self.search = None;
        }
        self.tail.extend_from_slice(bytes);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES as usize));
        if let Some(file) = &mut self.file {
            // As long as everything fits, everything is there at any time, however this process ends.
            let room = (FIRST_BYTES + LAST_BYTES).saturating_sub(self.written).min(bytes.len() as u64);
            let _ = file.write_all(&bytes[..room as usize]);
            let of_first = FIRST_BYTES.saturating_sub(self.written).min(bytes.len() as u64);
            self.last.extend(&bytes[of_first as usize..]);
            self.last.drain(..self.last.len().saturating_sub(LAST_BYTES as usize));
        }
        self.written += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::kept_output::gap;
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_file_has_the_beginning_and_the_end_of_what_is_too_long() {
        let path = std::env::temp_dir().join(format!("crosswind-log-{}", std::process::id()));
        let kept = |middle: usize| {
            let pieces = [(b'a', FIRST_BYTES as usize), (b'm', middle), (b'z', LAST_BYTES as usize - 9)];
            let all = pieces.map(|(byte, count)| vec![byte; count]).concat();
            let output = Cursor::new(all).chain(Cursor::new(b"\nthe end\n"));
            let log = Log::start(output, Some(path.clone()), None).unwrap();
            let Written { words, left_out } = log.end();
            assert!(words.ends_with("the end"));
            (left_out, std::fs::read(&path).unwrap())
        };
        let (nothing, whole) = kept(0);
        assert_eq!((nothing, whole.len() as u64), (0, FIRST_BYTES + LAST_BYTES));
        let (left_out, cut) = kept(1_000_000);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(left_out, 1_000_000);
        let (first, last) = whole.split_at(FIRST_BYTES as usize);
        assert!(cut == [first, gap(left_out).as_bytes(), last].concat());
    }

    #[test]
    fn without_a_file_nothing_is_left_out() {
        let long = std::io::repeat(b'x').take(FIRST_BYTES + LAST_BYTES + 1);
        assert_eq!(Log::start(long, None, None).unwrap().end().left_out, 0);
    }
}
