//! Programs in place of a workload's own client and server: a cell's settings.

use crate::programs::readiness::{FORMS, LONGEST_START_TIMEOUT_NS, Readiness, is_usual, start_timeout_ns};
use crosswind_settings::SettingError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A program that takes the place of a workload's own client or server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// What it is called in the result.
    pub name: String,
    /// The program and its arguments; {address} and {port} stand for the server's.
    pub command: Vec<String>,
    /// Of a server that does not follow the peer protocol: `tcp:PORT`, `udp:PORT`, `log:TEXT` (a line of its output contains it) or
    /// `run:COMMAND` (which ends with exit status 0 on its host).
    #[serde(default)]
    pub ready: Option<String>,
    /// How long it may take until it is ready.
    #[serde(default = "start_timeout_ns", skip_serializing_if = "is_usual")]
    pub start_timeout_ns: u64,
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
    /// When it is ready, as a server; none under the protocol, by `listening`.
    pub fn readiness(&self) -> Option<Readiness> {
        self.ready.as_deref().and_then(|text| Readiness::parse(text).ok())
    }

    /// How long it may take.
    pub const fn start_timeout(&self) -> Duration {
        Duration::from_nanos(self.start_timeout_ns)
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
        match self.ready.as_deref().map(Readiness::parse) {
            Some(Err(problem)) => return Err(SettingError::new("ready", problem, FORMS)),
            Some(Ok(Readiness::Exit)) => {
                let hint = "a server that has ended serves nobody: tcp:{port}, udp:{port}, log:TEXT or run:COMMAND";
                return Err(SettingError::new("ready", "is exit, and its exchanges come afterwards", hint));
            }
            _ => {}
        }
        if !(1..=LONGEST_START_TIMEOUT_NS).contains(&self.start_timeout_ns) {
            let problem = format!("{} is not between 1 and {LONGEST_START_TIMEOUT_NS}", self.start_timeout_ns);
            return Err(SettingError::new("start_timeout_ns", problem, "an hour at most"));
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
            (
                json!({"server": {"name": "x", "command": ["a"], "ready": "port"}}),
                "server.ready \"port\" is no sign of readiness",
            ),
            (
                json!({"server": {"name": "x", "command": ["a"], "ready": "exit"}}),
                "server.ready is exit, and its exchanges come afterwards",
            ),
            (
                json!({"client": {"name": "x", "command": ["a"], "ready": "tcp:7"}}),
                "client.ready is set, and only a server can be ready so",
            ),
            (
                json!({"client": "chromium"}),
                r#"client "chromium" is not null or {"name": "...", "command": [...], "ready": ...}"#,
            ),
            (json!({"client": {"name": "x"}}), "client is wrong: missing field `command`"),
            (
                json!({"client": {"name": "x", "command": ["a"], "redy": 1}}),
                "client is wrong: unknown field `redy`, expected one of `name`, `command`, `ready`, `start_timeout_ns`",
            ),
        ];
        for (peers, message) in cases {
            assert_eq!(refused(&peers), message);
        }
    }

    #[test]
    fn a_server_is_ready_by_the_protocol_or_by_a_sign() {
        let ready = |ready: Option<&str>| {
            let peer = json!({"name": "x", "command": ["a"], "ready": ready});
            serde_json::from_value::<Peer>(peer).unwrap().readiness()
        };
        assert_eq!(ready(None), None);
        assert_eq!(ready(Some("tcp:{port}")), Some(Readiness::Tcp("{port}".into())));
        assert_eq!(ready(Some("log:serving")), Some(Readiness::Log("serving".into())));
    }
}
