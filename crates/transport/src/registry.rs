//! Every transport there is: one line each.

use crate::Transport;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;

static TRANSPORTS: &[&dyn Transport] = &[
    &crate::tcp::Tcp,
    &crate::udp::Udp,
    &crate::tls::Tls,
    &crate::websocket::WEBSOCKET,
    &crate::websocket::WSS,
    &crate::socketio::OverWebSocket,
    &crate::socketio::OverWebTransport,
    &crate::quic::QUIC,
    &crate::quic::QUIC_DATAGRAM,
    &crate::webtransport::WEBTRANSPORT,
    &crate::webtransport::WEBTRANSPORT_DATAGRAM,
    &crate::http::HTTP1,
    &crate::http::HTTPS1,
    &crate::http::H2C,
    &crate::http::HTTP2,
    &crate::http::Http3,
];

/// A registered transport. A cell has its name.
#[derive(Clone, Copy)]
pub struct TransportRef(&'static dyn Transport);

/// The error for an unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("transport \"{name}\" is not known; transports are: {}", names().join(", "))]
pub struct UnknownTransport {
    /// The unknown name.
    pub name: String,
}

/// Every transport, in the order of the catalogue.
pub fn all() -> impl Iterator<Item = TransportRef> {
    TRANSPORTS.iter().map(|transport| TransportRef(*transport))
}

/// The transport called `name`.
///
/// # Errors
/// When no transport has that name.
pub fn find(name: &str) -> Result<TransportRef, UnknownTransport> {
    all().find(|transport| transport.name() == name).ok_or_else(|| UnknownTransport { name: name.into() })
}

fn names() -> Vec<&'static str> {
    TRANSPORTS.iter().map(|transport| transport.name()).collect()
}

impl TransportRef {
    /// The transport itself, for as long as the program runs.
    pub const fn get(self) -> &'static dyn Transport {
        self.0
    }
}

impl Deref for TransportRef {
    type Target = dyn Transport;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl fmt::Debug for TransportRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl fmt::Display for TransportRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl PartialEq for TransportRef {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for TransportRef {}

impl Serialize for TransportRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TransportRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        find(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_distinct_and_find_their_transport() {
        let names: HashSet<&str> = all().map(|transport| transport.name()).collect();
        assert_eq!(names.len(), all().count());
        assert!(names.iter().all(|name| find(name).is_ok_and(|found| found.name() == *name)));
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_that_are_known() {
        let error = find("smoke").unwrap_err().to_string();
        assert!(error.starts_with("transport \"smoke\" is not known; transports are: tcp, "), "{error}");
    }
}
