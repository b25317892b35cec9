//! When a program is ready: one grammar for `exec`, studies, flows and peers.
//!
//! A listening socket is a weak sign: its service may come later.

use std::fmt;
use std::time::Duration;

/// How long a program may take to be ready unless a cell says otherwise: compiling first takes some seconds.
pub const START_TIMEOUT_NS: u64 = 30_000_000_000;
/// Likewise, for serde.
pub const fn start_timeout_ns() -> u64 {
    START_TIMEOUT_NS
}

/// Whether it is nothing else, for serde.
#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub const fn is_usual(start_timeout_ns: &u64) -> bool {
    *start_timeout_ns == START_TIMEOUT_NS
}

/// The most it may be told to wait.
pub const LONGEST_START_TIMEOUT_NS: u64 = 3_600_000_000_000;

/// The forms, for hints.
pub const FORMS: &str = "tcp:8080, udp:53, exit, log:TEXT or run:COMMAND; a port may be {port}";

/// A sign of readiness. Ports and texts may have placeholders until they are filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Somebody listens on this TCP port.
    Tcp(String),
    /// Somebody is bound to this UDP port.
    Udp(String),
    /// Somebody listens on this port, over TCP or UDP: the default with a known port.
    Listens(u16),
    /// It has ended with exit status 0.
    Exit,
    /// A line in its output has this text.
    Log(String),
    /// This shell command, run on its host, ends with exit status 0.
    Run(String),
}

impl Readiness {
    /// Reads one. The error is a predicate, as "is not ...".
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let parsed = match kind {
            "tcp" | "udp" if is_port(rest) => {
                if kind == "tcp" {
                    Self::Tcp(rest.to_owned())
                } else {
                    Self::Udp(rest.to_owned())
                }
            }
            "exit" if text == "exit" => Self::Exit,
            "log" if !rest.is_empty() && !rest.contains('\n') => Self::Log(rest.to_owned()),
            "run" if !rest.trim().is_empty() && !rest.contains('\0') => Self::Run(rest.to_owned()),
            "tcp" | "udp" => return Err(format!("{text:?} has no port")),
            _ => return Err(format!("{text:?} is no sign of readiness")),
        };
        Ok(parsed)
    }

    /// With its placeholders replaced.
    #[must_use]
    pub fn filled_in(&self, fill_in: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Tcp(port) => Self::Tcp(fill_in(port)),
            Self::Udp(port) => Self::Udp(fill_in(port)),
            Self::Log(text) => Self::Log(fill_in(text)),
            Self::Run(command) => Self::Run(fill_in(command)),
            Self::Listens(_) | Self::Exit => self.clone(),
        }
    }

    /// What was waited for in vain.
    pub fn missing(&self) -> String {
        match self {
            Self::Tcp(port) => format!("nobody listens on TCP port {port}"),
            Self::Udp(port) => format!("nobody is bound to UDP port {port}"),
            Self::Listens(port) => format!("nobody listens on port {port}"),
            Self::Exit => "it has not ended with exit status 0".to_owned(),
            Self::Log(text) => format!("no line of its output has {text:?}"),
            Self::Run(command) => format!("`{command}` has not ended with exit status 0"),
        }
    }
}

impl fmt::Display for Readiness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(port) => write!(formatter, "tcp:{port}"),
            Self::Udp(port) => write!(formatter, "udp:{port}"),
            Self::Listens(port) => write!(formatter, "port {port}"),
            Self::Exit => formatter.write_str("exit"),
            Self::Log(text) => write!(formatter, "log:{text}"),
            Self::Run(command) => write!(formatter, "run:{command}"),
        }
    }
}

/// A limit in words: "30 s", "0.5 s".
pub fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64())
}

/// A number, or a placeholder for one.
fn is_port(text: &str) -> bool {
    let named = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    named.map_or_else(
        || text.parse::<u16>().is_ok_and(|port| port > 0),
        |named| named == "port" || named.strip_prefix("port:").is_some_and(|name| !name.is_empty()),
    )
}

/// Searches a text for lines with another, however it is cut.
#[derive(Debug, Default)]
pub struct LineSearch {
    /// The unfinished line, as far as it may contain the text.
    line: Vec<u8>,
}

impl LineSearch {
    /// Whether a line so far has `text`, in these bytes and the end before them.
    pub fn finds(&mut self, text: &[u8], bytes: &[u8]) -> bool {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.windows(text.len()).any(|part| part == text) {
                return true;
            }
            let kept = if piece.ends_with(b"\n") { 0 } else { text.len() - 1 };
            self.line.drain(..self.line.len().saturating_sub(kept));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_says_what_is_missing() {
        let read =
            |text: &str| Readiness::parse(text).map(|ready| ready.filled_in(|it| it.replace("{port}", "53")).missing());
        for (text, missing) in [
            ("tcp:8080", "nobody listens on TCP port 8080"),
            ("tcp:{port:http}", "nobody listens on TCP port {port:http}"),
            ("udp:{port}", "nobody is bound to UDP port 53"),
            ("exit", "it has not ended with exit status 0"),
            ("log:started: yes", "no line of its output has \"started: yes\""),
            ("run:dig @server -p {port}", "`dig @server -p 53` has not ended with exit status 0"),
        ] {
            assert_eq!(read(text), Ok(missing.to_owned()));
        }
        for (text, problem) in [
            ("port", "\"port\" is no sign of readiness"),
            ("exit:", "\"exit:\" is no sign of readiness"),
            ("log:", "\"log:\" is no sign of readiness"),
            ("tcp:", "\"tcp:\" has no port"),
            ("udp:65536", "\"udp:65536\" has no port"),
            ("tcp:{server}", "\"tcp:{server}\" has no port"),
        ] {
            assert_eq!(read(text), Err(problem.to_owned()));
        }
    }

    #[test]
    fn a_text_is_found_in_one_line_however_it_is_cut() {
        let finds = |pieces: &[&[u8]]| {
            let mut search = LineSearch::default();
            pieces.iter().any(|piece| search.finds(b"now ready", piece))
        };
        assert!(finds(&[b"starting\nit is n", b"ow r", b"", b"eady."]));
        assert!(!finds(&[b"it is now ", b"\nready\n"]));
    }
}
