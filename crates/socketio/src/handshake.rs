//! The opening of an Engine.IO session (protocol 4): the server's open packet, the client's first WebTransport frame.

use crate::Error;
use serde_json::{Value, json};

/// The longest time in JavaScript's timers, in milliseconds.
const MAX_TIMER_MS: u64 = (1 << 31) - 1;
/// The largest integer exact in JavaScript.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
const MAX_SID_BYTES: usize = 128;

/// The server's parameters for a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The Engine.IO session's id: 1 to 128 printable ASCII characters without quotes and backslashes, because the
    /// JavaScript client puts it into JSON and addresses as it is.
    pub sid: String,
    /// Transports the client may upgrade to.
    pub upgrades: Vec<String>,
    /// Time between the server's pings, in milliseconds: 1 to 2^31 - 1.
    pub ping_interval_ms: u64,
    /// How long a pong may take, in milliseconds: 1 to 2^31 - 1.
    pub ping_timeout_ms: u64,
    /// The longest payload the server accepts, in bytes: 1 to 2^53 - 1.
    pub max_payload_bytes: u64,
}

impl Handshake {
    /// Reads an open packet's JSON. All five fields are required; others are ignored.
    ///
    /// Errors: not a JSON object, or a field missing, of another type, or outside its range.
    pub fn parse(json: &str) -> Result<Self, Error> {
        let value = parse_json("open packet", json)?;
        let number = |field, expected| value[field].as_u64().ok_or(Error::Handshake { field, expected });
        let upgrades = value["upgrades"].as_array().and_then(|list| list.iter().map(text).collect());
        let handshake = Self {
            sid: text(&value["sid"]).ok_or(Error::Handshake { field: "sid", expected: "text" })?,
            upgrades: upgrades.ok_or(Error::Handshake { field: "upgrades", expected: "a list of texts" })?,
            ping_interval_ms: number("pingInterval", "a whole number of milliseconds")?,
            ping_timeout_ms: number("pingTimeout", "a whole number of milliseconds")?,
            max_payload_bytes: number("maxPayload", "a whole number of bytes")?,
        };
        handshake.validate()?;
        Ok(handshake)
    }

    /// An open packet's JSON, fields in the original's order.
    pub fn to_json(&self) -> String {
        format!(
            r#"{{"sid":{},"upgrades":{},"pingInterval":{},"pingTimeout":{},"maxPayload":{}}}"#,
            json!(self.sid),
            json!(self.upgrades),
            self.ping_interval_ms,
            self.ping_timeout_ms,
            self.max_payload_bytes
        )
    }

    /// Checks that every field is in the range written beside it.
    pub fn validate(&self) -> Result<(), Error> {
        let within = |number: u64, max, field, expected| {
            if (1..=max).contains(&number) { Ok(()) } else { Err(Error::Handshake { field, expected }) }
        };
        check_sid(&self.sid)?;
        within(self.ping_interval_ms, MAX_TIMER_MS, "pingInterval", "from 1 to 2^31 - 1 ms")?;
        within(self.ping_timeout_ms, MAX_TIMER_MS, "pingTimeout", "from 1 to 2^31 - 1 ms")?;
        within(self.max_payload_bytes, MAX_SAFE_INTEGER, "maxPayload", "from 1 to 2^53 - 1 bytes")
    }
}

/// The data of the client's first WebTransport frame: nothing for a new session, `{"sid":"..."}` to upgrade one.
pub fn encode_client_open(sid: Option<&str>) -> String {
    sid.map(|sid| json!({ "sid": sid }).to_string()).unwrap_or_default()
}

/// The id in the client's first WebTransport frame; `None` for a new session.
///
/// Errors: anything but a JSON object with a usable `sid`.
pub fn parse_client_open(data: &str) -> Result<Option<String>, Error> {
    if data.is_empty() {
        return Ok(None);
    }
    let value = parse_json("the client's open packet", data)?;
    let sid = text(&value["sid"]).ok_or(Error::Handshake { field: "sid", expected: "text" })?;
    check_sid(&sid)?;
    Ok(Some(sid))
}

pub(crate) fn parse_json(place: &'static str, json: &str) -> Result<Value, Error> {
    serde_json::from_str(json).map_err(|error| Error::Json { place, cause: error.to_string() })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn check_sid(sid: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    if (1..=MAX_SID_BYTES).contains(&sid.len()) && sid.bytes().all(allowed) {
        return Ok(());
    }
    Err(Error::Handshake {
        field: "sid",
        expected: "1 to 128 printable ASCII characters without quotes and backslashes",
    })
}
