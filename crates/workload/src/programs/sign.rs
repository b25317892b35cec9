//! One program's sign of readiness, and its places.

use super::log::LogSearch;
use super::readiness::{LineSearch, Readiness};
use super::role::Role;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One program's expected sign of readiness.
pub struct Sign {
    role: Role,
    readiness: Readiness,
    log: Option<Arc<LogSearch>>,
    /// The last answer to a question about it, in words.
    answer: String,
    /// Output written to files directly.
    files: Vec<FileSearch>,
}

struct FileSearch {
    path: PathBuf,
    read: u64,
    lines: LineSearch,
}

impl Sign {
    /// `readiness`, with its placeholders filled in.
    pub fn new(role: Role, readiness: Readiness) -> Self {
        let log = if let Readiness::Log(text) = &readiness { Some(Arc::new(LogSearch::new(text))) } else { None };
        Self { role, readiness, log, answer: String::new(), files: Vec::new() }
    }

    /// Searches output as it comes.
    pub const fn log(&self) -> Option<&Arc<LogSearch>> {
        self.log.as_ref()
    }

    /// Whose it is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Keeps the words with an answer. The limit may cut the last question short, before any.
    pub fn note_answer(&mut self, words: String) {
        if !words.is_empty() {
            self.answer = words;
        }
    }

    /// What is missing, with the last answer.
    pub fn missing(&self) -> String {
        let missing = self.readiness.missing();
        if self.answer.is_empty() { missing } else { format!("{missing}: {}", self.answer) }
    }

    /// What is waited for.
    pub const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Whether a line in its output has the text.
    pub fn is_written(&mut self) -> bool {
        let Some(search) = &self.log else { return false };
        search.is_found() || self.files.iter_mut().any(|file| file.finds(search.text()))
    }

    /// Its output goes to this file, past us.
    pub fn search_in(&mut self, path: &Path) {
        self.files.push(FileSearch { path: path.to_owned(), read: 0, lines: LineSearch::default() });
    }
}

impl FileSearch {
    /// Whether new bytes have the text. A removed file has none.
    fn finds(&mut self, text: &[u8]) -> bool {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut bytes)
        });
        self.read += read.unwrap_or(0) as u64;
        self.lines.finds(text, &bytes)
    }
}
