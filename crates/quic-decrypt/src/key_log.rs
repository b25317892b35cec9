//! A key log (`SSLKEYLOGFILE`): lines of a label, a client's random number and a secret, in hexadecimal.
//!
//! Format: RFC 9850, "The SSLKEYLOGFILE Format for TLS". Unknown labels, malformed and empty lines are skipped.

use std::collections::HashMap;

/// The random number in a `ClientHello`.
pub type Random = [u8; 32];

/// A secret's purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    ClientEarly,
    ClientHandshake,
    ServerHandshake,
    ClientData,
    ServerData,
}

const LABELS: [(&str, Label); 5] = [
    ("CLIENT_EARLY_TRAFFIC_SECRET", Label::ClientEarly),
    ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", Label::ClientHandshake),
    ("SERVER_HANDSHAKE_TRAFFIC_SECRET", Label::ServerHandshake),
    ("CLIENT_TRAFFIC_SECRET_0", Label::ClientData),
    ("SERVER_TRAFFIC_SECRET_0", Label::ServerData),
];
/// Some libraries' prefix for QUIC labels.
const PREFIX: &str = "QUIC_";
/// A secret's length in bytes: its hash's.
const LENGTHS: [usize; 2] = [32, 48];

/// Connections' secrets.
#[derive(Default)]
pub struct KeyLog {
    secrets: HashMap<Random, [Option<Box<[u8]>>; LABELS.len()]>,
}

/// Prints no secret.
impl std::fmt::Debug for KeyLog {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "KeyLog of {} connections", self.secrets.len())
    }
}

impl KeyLog {
    /// Reads a file. The first of duplicate secrets counts.
    pub fn parse(text: &[u8]) -> Self {
        let mut log = Self::default();
        log.add(text);
        log
    }

    /// Adds another file.
    pub fn add(&mut self, text: &[u8]) {
        for (label, random, secret) in text.split(|&byte| byte == b'\n').filter_map(read) {
            self.secrets.entry(random).or_default()[label as usize].get_or_insert(secret);
        }
    }

    /// How many connections have secrets.
    pub fn connections(&self) -> usize {
        self.secrets.len()
    }

    pub(crate) fn has(&self, random: &Random) -> bool {
        self.secrets.contains_key(random)
    }

    pub(crate) fn secret(&self, random: &Random, label: Label) -> Option<&[u8]> {
        self.secrets.get(random)?[label as usize].as_deref()
    }
}

fn read(line: &[u8]) -> Option<(Label, Random, Box<[u8]>)> {
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let name = words.next()?;
    let name = name.strip_prefix(PREFIX).unwrap_or(name);
    let label = LABELS.iter().find(|it| it.0 == name)?.1;
    let random = bytes(words.next()?)?.as_ref().try_into().ok()?;
    let secret = bytes(words.next()?).filter(|secret| LENGTHS.contains(&secret.len()))?;
    words.next().is_none().then_some((label, random, secret))
}

fn bytes(text: &str) -> Option<Box<[u8]>> {
    let digit = |byte: u8| Some(char::from(byte).to_digit(16)? as u8);
    let byte = |pair: &[u8]| match pair {
        &[high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

    fn random() -> Random {
        std::array::from_fn(|at| at as u8)
    }

    #[test]
    fn only_whole_lines_of_known_secrets_count() {
        let secret = "ab".repeat(32);
        let text = format!(
            "# a comment\nCLIENT_TRAFFIC_SECRET_0 {RANDOM} {secret}\r\nQUIC_SERVER_TRAFFIC_SECRET_0 {RANDOM} {}\n\
             CLIENT_RANDOM {RANDOM} {}\nEXPORTER_SECRET {RANDOM} {secret}\n\
             SERVER_HANDSHAKE_TRAFFIC_SECRET {RANDOM} {}\nCLIENT_HANDSHAKE_TRAFFIC_SECRET {RANDOM} {secret} more\n\
             CLIENT_TRAFFIC_SECRET_0 {RANDOM} {}\nCLIENT_EARLY_TRAFFIC_SECRET {RANDOM}",
            "cd".repeat(48),
            "ef".repeat(48),
            "a".repeat(63),
            "00".repeat(32),
        );
        let log = KeyLog::parse(text.as_bytes());
        assert_eq!(log.connections(), 1);
        assert_eq!(log.secret(&random(), Label::ClientData), Some(&[0xab; 32][..]));
        assert_eq!(log.secret(&random(), Label::ServerData), Some(&[0xcd; 48][..]));
        for label in [Label::ClientEarly, Label::ClientHandshake, Label::ServerHandshake] {
            assert_eq!(log.secret(&random(), label), None);
        }
        assert_eq!(format!("{log:?}"), "KeyLog of 1 connections");
    }

    #[test]
    fn garbage_has_no_secrets() {
        for text in [&b""[..], b"\xff\xfe\n\n \n", b"CLIENT_TRAFFIC_SECRET_0", b"CLIENT_TRAFFIC_SECRET_0 \xc3\xa9 00"] {
            assert_eq!(KeyLog::parse(text).connections(), 0);
        }
    }
}
