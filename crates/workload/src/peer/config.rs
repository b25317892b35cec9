//! Programs in place of a workload's own client and server: a cell's settings.

use crosswind_settings::SettingError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of `ready` for a server that is ready as soon as it listens on its port.
const PORT: &str = "port";

/// A program that takes the place of a workload's own client or server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// What it is called in the result.
    pub name: String,
    /// The program and its arguments; {address} and {port} stand for the server's.
    pub command: Vec<String>,
    /// Of a server that does not follow the peer protocol: `port`, or a text that a line of its output contains.
    #[serde(default)]
    pub ready: Option<String>,
}

/// When a server is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness<'a> {
    /// It prints `listening`, as the protocol says.
    Protocol,
    /// Its port is open.
    Port,
    /// A line in its output has this text.
    Text(&'a str),
}

/// The peers of a workload. Where there is none, the end is Crosswind's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Peers {
    /// Who the client is: native (Crosswind's own), a peer that comes with Crosswind, or a program that follows the peer protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("kind" = "peer", "default_help" = "native"))]
    pub client: Option<Peer>,
    /// Who the server is: native (Crosswind's own), a peer that comes with Crosswind, a program that follows the peer protocol, or
    /// any program with a stated sign of readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("kind" = "peer", "default_help" = "native"))]
    pub server: Option<Peer>,
}

impl Peer {
    /// When it is ready, as a server.
    pub fn readiness(&self) -> Readiness<'_> {
        match self.ready.as_deref() {
            None => Readiness::Protocol,
            Some(PORT) => Readiness::Port,
            Some(text) => Readiness::Text(text),
        }
    }

    fn check(&self) -> Result<(), SettingError> {
        if self.name.is_empty() || self.name == "native" {
            let problem = format!("{:?} is no name of a peer", self.name);
            return Err(SettingError::new(
                "name",
                problem,
                "any other text; null instead of a peer is Crosswind's own",
            ));
        }
        if self.command.is_empty() {
            return Err(SettingError::new("command", "is an empty list", "give the program and its arguments"));
        }
        if self.command.iter().any(|argument| argument.contains('\0')) {
            let hint = "an argument is a text without the character 0";
            return Err(SettingError::new("command", "has an argument that no program can be given", hint));
        }
        if self.ready.as_deref() == Some("") {
            let hint = "\"port\", or a text that the server prints when it is ready";
            return Err(SettingError::new("ready", "is an empty text", hint));
        }
        Ok(())
    }
}

impl Peers {
    /// Its keys in a cell.
    pub const fn names() -> [&'static str; 2] {
        ["client", "server"]
    }

    /// Whether any end is not Crosswind's own.
    pub const fn any(&self) -> bool {
        self.client.is_some() || self.server.is_some()
    }

    /// Refuses unusable peers.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        for (end, peer) in Self::names().into_iter().zip([&self.client, &self.server]) {
            if let Some(peer) = peer {
                peer.check().map_err(|error| error.within(end))?;
            }
        }
        if self.client.as_ref().is_some_and(|client| client.ready.is_some()) {
            let hint =
                "leave ready out: a client follows the peer protocol, in which it says by itself when it is ready";
            return Err(SettingError::new("client.ready", "is set, and only a server can be ready so", hint));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn refused(peers: &Value) -> String {
        let peers: Result<Peers, _> = crosswind_settings::read(peers.as_object().unwrap());
        peers.and_then(|peers| peers.check()).unwrap_err().to_string()
    }

    #[test]
    fn a_peer_that_cannot_be_run_is_refused_with_its_key() {
        let cases = [
            (json!({"client": {"name": "x", "command": []}}), "client.command is an empty list"),
            (json!({"server": {"name": "", "command": ["a"]}}), "server.name \"\" is no name of a peer"),
            (json!({"server": {"name": "native", "command": ["a"]}}), "server.name \"native\" is no name of a peer"),
            (
                json!({"server": {"name": "x", "command": ["a\0"]}}),
                "server.command has an argument that no program can be given",
            ),
            (json!({"server": {"name": "x", "command": ["a"], "ready": ""}}), "server.ready is an empty text"),
            (
                json!({"client": {"name": "x", "command": ["a"], "ready": "port"}}),
                "client.ready is set, and only a server can be ready so",
            ),
            (
                json!({"client": "chromium"}),
                r#"client "chromium" is not null or {"name": "...", "command": [...], "ready": ...}"#,
            ),
            (json!({"client": {"name": "x"}}), "client is wrong: missing field `command`"),
            (
                json!({"client": {"name": "x", "command": ["a"], "redy": 1}}),
                "client is wrong: unknown field `redy`, expected one of `name`, `command`, `ready`",
            ),
        ];
        for (peers, message) in cases {
            assert_eq!(refused(&peers), message);
        }
    }

    #[test]
    fn a_server_is_ready_by_the_protocol_by_its_port_or_by_a_text() {
        let ready =
            |ready: Option<&str>| Peer { name: "x".into(), command: vec!["a".into()], ready: ready.map(str::to_owned) };
        assert_eq!(ready(None).readiness(), Readiness::Protocol);
        assert_eq!(ready(Some("port")).readiness(), Readiness::Port);
        assert_eq!(ready(Some("serving")).readiness(), Readiness::Text("serving"));
    }
}
