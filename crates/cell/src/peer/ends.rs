//! Shared by both ends.

use crate::event::write_line;
use crate::{CellError, ErrorKind};
use crosswind_transport::security::Security;
use crosswind_transport::{Features, Payload, Resumption, Settings, SocketSettings, TransportError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Bytes a call, where messages have no boundaries.
pub const CHUNK: usize = 64 * 1024;

/// The command line's arguments.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, CellError> {
    serde_json::from_str(text).map_err(|error| {
        CellError::bad_cell(format!("the argument is not what it should be: {error}"))
            .hint("docs/cell-protocol.md, Peers")
    })
}

/// Prints one line. On failure nobody is left to read it.
pub fn print(line: &impl Serialize) {
    let _ = write_line(&mut std::io::stdout(), line);
}

pub fn host_error(error: &TransportError) -> CellError {
    CellError::new(ErrorKind::Host, error.to_string())
}

/// A cell's default socket settings.
pub fn settings(security: Option<Security>, payload: Payload, path: String, polling: bool) -> Settings {
    Settings {
        socket: SocketSettings { nodelay: Some(true), ..SocketSettings::default() },
        resumption: Resumption::None,
        polling,
        payload,
        path,
        security: security.map(Arc::new),
        ..Settings::default()
    }
}

/// Whether one sent message is received as one.
pub const fn has_boundaries(features: Features) -> bool {
    features.datagram || features.text || features.http
}
