//! Peers' events (docs/peers.md), one JSON object a line, and the lines themselves. Without I/O.

use crate::warning::Warning;
use crosswind_transport::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest accepted line, bytes. The longest event is an error with a message for people.
pub const LONGEST_LINE: usize = 64 * 1024;
/// More warnings than a reader would read.
const MAX_WARNINGS: usize = 100;
const MAX_NAME: usize = 200;
/// Characters quoted from an unreadable line.
const QUOTED_CHARACTERS: usize = 80;

/// A client's line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
pub enum ClientEvent {
    /// It has started and has sent nothing yet.
    Ready { implementation: String, clock: PeerClockEvent },
    /// A connection was set up.
    Connected(Connected),
    /// An exchange has ended.
    Sample(SampleEvent),
    /// A page's object has been loaded, or not.
    Object(ObjectEvent),
    /// A note for readers of the result.
    Warning { message: String },
    /// The end.
    Finished {
        #[serde(default)]
        facts: BTreeMap<String, f64>,
    },
    /// It cannot go on.
    Error {
        message: String,
        #[serde(default)]
        hint: Option<String>,
    },
}

/// A server's line.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase", deny_unknown_fields)]
pub enum ServerEvent {
    /// It accepts connections.
    Listening { implementation: String },
    /// A note for readers of the result.
    Warning { message: String },
    /// It cannot go on.
    Error {
        message: String,
        #[serde(default)]
        hint: Option<String>,
    },
}

/// The clock of a client's times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerClockEvent {
    /// Its name.
    pub name: String,
    /// How fine it is.
    pub resolution_ns: u64,
    /// `CLOCK_MONOTONIC` when this clock showed 0.
    pub monotonic_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connected {
    pub connection: u32,
    /// The transport in use, as far as the client can tell.
    pub transport: Option<String>,
    pub setup_ns: Option<u64>,
    #[serde(default)]
    pub transport_ns: Option<u64>,
    #[serde(default)]
    pub security_ns: Option<u64>,
    #[serde(default)]
    pub upgrade_ns: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleEvent {
    pub exchange: u64,
    pub connection: u32,
    #[serde(default)]
    pub stream: u32,
    #[serde(default)]
    pub intended_ns: Option<u64>,
    pub sent_ns: Option<u64>,
    pub received_ns: Option<u64>,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub outcome: Outcome,
    #[serde(default)]
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectEvent {
    pub page: u64,
    pub object: String,
    pub connection: u32,
    pub queued_ns: u64,
    pub sent_ns: Option<u64>,
    pub first_ns: Option<u64>,
    pub received_ns: Option<u64>,
    pub bytes: u64,
    pub outcome: Outcome,
}

/// A peer's breach of the protocol, with its output line, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Counted from 1.
    pub line: Option<u64>,
    /// The fault.
    pub problem: String,
}

impl Violation {
    /// One without a single line at fault.
    pub fn new(problem: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line} of its output: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

/// Cuts a program's output into lines, and counts them.
#[derive(Debug, Default)]
pub struct Lines {
    unread: Vec<u8>,
    count: u64,
}

impl Lines {
    /// Takes more output, and calls `each` with every complete line. Blank lines are passed over.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), Violation> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.unread.len() + piece.len() > LONGEST_LINE {
                let problem = format!("it has more than {LONGEST_LINE} bytes");
                return Err(Violation { line: Some(self.count + 1), problem });
            }
            self.unread.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(&mut each)?;
            }
        }
        Ok(())
    }

    /// At the end of output, calls `each` with an unterminated last line.
    pub fn handle_end(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), Violation> {
        self.end_line(&mut each)
    }

    fn end_line(&mut self, each: &mut impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), Violation> {
        self.count += 1;
        let line = std::mem::take(&mut self.unread);
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        each(line).map_err(|problem| Violation { line: Some(self.count), problem })
    }
}

/// Takes a peer's note for readers of the result; an error means too many.
pub fn add_warning(warnings: &mut Vec<Warning>, message: String) -> Result<(), String> {
    if warnings.len() == MAX_WARNINGS {
        return Err(format!("there are more than {MAX_WARNINGS} warnings"));
    }
    warnings.push(Warning::peer(message));
    Ok(())
}

/// An error unless an event's `name` under a key can be shown.
pub fn check_name(key: &str, name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(format!("{key} is not a text of 1 to {MAX_NAME} bytes"));
    }
    Ok(())
}

/// Reads one line; an error says why it cannot be read, and quotes it.
pub fn parse<'a, Event: Deserialize<'a>>(line: &'a [u8]) -> Result<Event, String> {
    if !line.starts_with(b"{") {
        return Err(format!("it is no JSON object: {}", quoted(line)));
    }
    serde_json::from_slice(line).map_err(|error| {
        let words = error.to_string();
        let cause = words.rsplit_once(" at line ").map_or(words.as_str(), |(cause, _)| cause);
        format!("{cause}: {}", quoted(line))
    })
}

/// A line's beginning, fit for a message.
fn quoted(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * QUOTED_CHARACTERS)]).into_owned();
    let shown: String = text.chars().filter(|c| !c.is_control()).take(QUOTED_CHARACTERS).collect();
    if line.len() > shown.len() { format!("{shown}...") } else { shown }
}
