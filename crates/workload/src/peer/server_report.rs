//! What a server peer reports. Without I/O.

use super::events::{Lines, ServerEvent, Violation, parse};

/// More warnings than a reader would read.
const MAX_WARNINGS: usize = 100;
const MAX_NAME: usize = 200;

/// A server that is being followed.
#[derive(Debug, Default)]
pub struct ServerFollower {
    lines: Lines,
    reported: Reported,
}

#[derive(Debug, Default)]
struct Reported {
    implementation: Option<String>,
    warnings: Vec<String>,
    failed: Option<(String, Option<String>)>,
}

impl ServerFollower {
    /// It has written this.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let reported = &mut self.reported;
        self.lines.handle_bytes(bytes, |line| reported.handle_line(line))
    }

    /// What it is, once it listens.
    pub fn implementation(&self) -> Option<&str> {
        self.reported.implementation.as_deref()
    }

    /// Why it cannot go on, and what to do, where it has said so.
    pub fn failed(&self) -> Option<&(String, Option<String>)> {
        self.reported.failed.as_ref()
    }

    /// What a reader of the result should know.
    pub fn warnings(&self) -> &[String] {
        &self.reported.warnings
    }
}

impl Reported {
    fn handle_line(&mut self, line: &[u8]) -> Result<(), String> {
        match parse(line)? {
            ServerEvent::Listening { .. } if self.implementation.is_some() => {
                return Err("it listens for the second time".into());
            }
            ServerEvent::Listening { implementation }
                if implementation.is_empty() || implementation.len() > MAX_NAME =>
            {
                return Err(format!("implementation is not a text of 1 to {MAX_NAME} bytes"));
            }
            ServerEvent::Listening { implementation } => self.implementation = Some(implementation),
            ServerEvent::Warning { .. } if self.warnings.len() == MAX_WARNINGS => {
                return Err(format!("there are more than {MAX_WARNINGS} warnings"));
            }
            ServerEvent::Warning { message } => self.warnings.push(message),
            ServerEvent::Error { message, hint } => self.failed = Some((message, hint)),
        }
        Ok(())
    }
}
