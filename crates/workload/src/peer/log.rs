//! What a peer writes beside the protocol: kept in a file up to a limit, with its end in memory for messages.

use crate::last_words::words_of;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How much of it is kept in the file, so that a program that writes without end fills no disk.
const KEPT_BYTES: u64 = 16 << 20;
/// How much of its end is kept in memory.
const TAIL_BYTES: usize = 4096;
const CHUNK: usize = 16 * 1024;

/// One stream of a program, which a thread of its own reads to its end.
#[derive(Debug)]
pub struct Log {
    path: Option<PathBuf>,
    tail: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Log {
    /// Reads `stream` into the file at `path`, if there is one.
    pub fn start(stream: impl Read + Send + 'static, path: Option<PathBuf>) -> std::io::Result<Self> {
        Ok(Self::watching(stream, path, String::new())?.0)
    }

    /// Likewise, and says when a line has `text` in it.
    pub fn watching(
        stream: impl Read + Send + 'static,
        path: Option<PathBuf>,
        text: String,
    ) -> std::io::Result<(Self, Receiver<()>)> {
        let file = path.as_deref().map(File::create).transpose()?;
        let tail = Arc::new(Mutex::new(Vec::new()));
        let (found, watched) = channel();
        let mut reading = Reading { file, tail: Arc::clone(&tail), written: 0, text, line: Vec::new(), found };
        let reader = std::thread::Builder::new().name("log".into()).spawn(move || reading.run(stream))?;
        Ok((Self { path, tail, reader }, watched))
    }

    /// The name of its file.
    pub fn file_name(&self) -> Option<&str> {
        self.path.as_deref()?.file_name()?.to_str()
    }

    /// Its last words, once everything that writes to it has ended.
    pub fn last_words(self) -> String {
        // Its last words are better than none, should it have panicked.
        let _ = self.reader.join();
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        words_of(&String::from_utf8_lossy(&tail))
    }
}

struct Reading {
    file: Option<File>,
    tail: Arc<Mutex<Vec<u8>>>,
    written: u64,
    text: String,
    /// The line that is being written, as far as a text may be found in it.
    line: Vec<u8>,
    found: Sender<()>,
}

impl Reading {
    fn run(&mut self, mut stream: impl Read) {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            self.take(&buffer[..count]);
        }
        if self.written > KEPT_BYTES {
            let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            let left_out = self.written - KEPT_BYTES;
            if let Some(file) = &mut self.file {
                let _ = write!(file, "\n[of {left_out} bytes more, only the last {} follow]\n", tail.len());
                let _ = file.write_all(&tail);
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = KEPT_BYTES.saturating_sub(self.written).min(bytes.len() as u64) as usize;
        self.written += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            // A full disk shows in the files that the result needs.
            let _ = file.write_all(&bytes[..room]);
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(bytes);
        let too_much = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..too_much);
        drop(tail);
        self.look_for_text(bytes);
    }

    fn look_for_text(&mut self, bytes: &[u8]) {
        if self.text.is_empty() {
            return;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.windows(self.text.len()).any(|part| part == self.text.as_bytes()) {
                // Nobody waits any more once it was found.
                let _ = self.found.send(());
                self.text.clear();
                return;
            }
            let kept = if piece.ends_with(b"\n") { 0 } else { self.text.len() - 1 };
            let too_much = self.line.len().saturating_sub(kept);
            self.line.drain(..too_much);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::time::Duration;

    #[test]
    fn a_text_is_found_however_the_output_is_cut() {
        /// Gives one byte a call.
        struct Slowly(Cursor<&'static [u8]>);
        impl Read for Slowly {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.0.read(&mut buffer[..1])
            }
        }
        let watch = |output: &'static [u8]| {
            let (log, found) = Log::watching(Slowly(Cursor::new(output)), None, "now ready".into()).unwrap();
            (found.recv_timeout(Duration::from_mins(1)).is_ok(), log.last_words())
        };
        assert_eq!(watch(b"starting\nit is now ready.\n"), (true, "starting | it is now ready.".into()));
        assert_eq!(watch(b"it is now \nready\n"), (false, "it is now | ready".into()));
    }

    #[test]
    fn a_file_has_the_beginning_and_the_end_of_what_is_too_long() {
        let path = std::env::temp_dir().join(format!("crosswind-log-{}", std::process::id()));
        let long = std::io::repeat(b'x').take(KEPT_BYTES + 10_000);
        let log = Log::start(long.chain(Cursor::new(b"\nthe end\n")), Some(path.clone())).unwrap();
        assert!(log.last_words().ends_with("the end"));
        let text = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(text.len() as u64 > KEPT_BYTES && (text.len() as u64) < KEPT_BYTES + 5000);
        let end = String::from_utf8_lossy(&text[KEPT_BYTES as usize..]).into_owned();
        assert!(
            end.starts_with("\n[of 10009 bytes more, only the last 4096 follow]\n") && end.ends_with("\nthe end\n")
        );
    }
}
