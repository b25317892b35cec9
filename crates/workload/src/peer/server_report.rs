//! A server peer's report. Without I/O.

use super::events::{Lines, ServerEvent, Violation, add_warning, check_name, parse};
use crate::warning::Warning;

/// A followed server.
#[derive(Debug, Default)]
pub struct ServerFollower {
    lines: Lines,
    reported: Reported,
}

#[derive(Debug, Default)]
struct Reported {
    implementation: Option<String>,
    warnings: Vec<Warning>,
    failed: Option<(String, Option<String>)>,
}

impl ServerFollower {
    /// It has written this.
    pub fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let reported = &mut self.reported;
        self.lines.handle_bytes(bytes, |line| reported.handle_line(line))
    }

    /// Its implementation, once it listens.
    pub fn implementation(&self) -> Option<&str> {
        self.reported.implementation.as_deref()
    }

    /// Its reason for giving up, and its advice, if reported.
    pub fn failed(&self) -> Option<&(String, Option<String>)> {
        self.reported.failed.as_ref()
    }

    /// Notes for readers of the result.
    pub fn warnings(&self) -> &[Warning] {
        &self.reported.warnings
    }
}

impl Reported {
    fn handle_line(&mut self, line: &[u8]) -> Result<(), String> {
        match parse(line)? {
            ServerEvent::Listening { .. } if self.implementation.is_some() => {
                return Err("it listens for the second time".into());
            }
            ServerEvent::Listening { implementation } => {
                check_name("implementation", &implementation)?;
                self.implementation = Some(implementation);
            }
            ServerEvent::Warning { message } => add_warning(&mut self.warnings, message)?,
            ServerEvent::Error { message, hint } => self.failed = Some((message, hint)),
        }
        Ok(())
    }
}
