//! The cell as it is read: JSON in, checked, with every default filled in.

use crate::CellError;
use crosswind_host::{Backend, Family, HostConfig, Placement};
use crosswind_ledger::Budget;
use crosswind_path::{DirectionConfig, PathConfig};
use crosswind_units::Duration;
use crosswind_workload::{Limits, WorkloadConfig};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The only schema that this version reads.
const SCHEMA: &str = "crosswind.cell/1";
/// A day: longer is a mistake in units.
const MAX_DEADLINE_NS: u64 = 86_400_000_000_000;

/// One combination of levels, to be run once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Must be `crosswind.cell/1`.
    pub schema: String,
    /// The caller's name for it.
    #[serde(default)]
    pub id: String,
    /// Where chance comes from.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The network.
    #[serde(default)]
    pub path: PathSection,
    /// Both hosts.
    #[serde(default, deserialize_with = "crosswind_settings::deserialize")]
    pub host: HostConfig,
    /// What runs across it.
    pub workload: WorkloadConfig,
    /// What is written where.
    #[serde(default)]
    pub output: Output,
    /// What the emulation may be off by.
    #[serde(default, deserialize_with = "crosswind_settings::deserialize")]
    pub budget: Budget,
    /// Where its threads run, and whether other cells run beside it.
    #[serde(default)]
    pub placement: Placement,
    /// Time between two progress events.
    #[serde(default = "default_heartbeat")]
    pub heartbeat_ns: u64,
    /// Bound on the whole cell.
    #[serde(default = "default_deadline")]
    pub deadline_ns: u64,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathSection {
    /// Emulator or wire.
    pub backend: Backend,
    /// Address family.
    pub family: Family,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Client to server.
    pub forward: DirectionConfig,
    /// Server to client.
    pub reverse: DirectionConfig,
}

impl Default for PathSection {
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            family: Family::default(),
            mtu_bytes: 1500,
            forward: DirectionConfig::default(),
            reverse: DirectionConfig::default(),
        }
    }
}

impl PathSection {
    /// The emulated part.
    pub const fn config(&self) -> PathConfig {
        PathConfig { forward: self.forward, reverse: self.reverse }
    }
}

/// What is written where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(clippy::struct_excessive_bools)] // each is a file or a section of its own
pub struct Output {
    /// An existing directory; without one no file is written.
    pub directory: Option<PathBuf>,
    /// Write `packets.arrow`.
    pub packets: bool,
    /// Write `client.pcapng` and `server.pcapng`, and `keys.log` with which they can be read.
    pub capture: bool,
    /// Write `client.qlog` and `server.qlog`, of QUIC.
    pub qlog: bool,
    /// Sample where the hosts' processor time goes.
    pub profile: bool,
}

const fn default_seed() -> u64 {
    1
}

const fn default_deadline() -> u64 {
    600_000_000_000
}

const fn default_heartbeat() -> u64 {
    250_000_000
}

impl Cell {
    /// Reads and checks a cell, and fills in what it leaves out.
    pub fn from_json(text: &str) -> Result<Self, CellError> {
        let mut cell: Self = serde_json::from_str(text).map_err(|e| {
            CellError::bad_cell(format!("the cell is not what it should be: {e}"))
                .hint("docs/cell-protocol.md lists every key")
        })?;
        cell.check()?;
        cell.host = cell.host.resolved();
        cell.workload.fill_in(cell.round_trip());
        Ok(cell)
    }

    /// Propagation both ways.
    pub fn round_trip(&self) -> Duration {
        self.path.forward.longest_delay() + self.path.reverse.longest_delay()
    }

    fn check(&self) -> Result<(), CellError> {
        let wrong = |message: String, hint: &str| Err(CellError::bad_cell(message).hint(hint));
        if self.schema != SCHEMA {
            return wrong(
                format!("schema is \"{}\", this program reads \"{SCHEMA}\"", self.schema),
                "use the crosswind-cell of the same version",
            );
        }
        let ipv6 = self.path.family == Family::Ipv6;
        // RFC 791 and RFC 8200: what every host has to take.
        let smallest = if ipv6 { 1280 } else { 576 };
        if !(smallest..=65_535).contains(&self.path.mtu_bytes) {
            return wrong(
                format!("path.mtu_bytes {} is not between {smallest} and 65535", self.path.mtu_bytes),
                "1500 is Ethernet's",
            );
        }
        if self.path.backend == Backend::Direct && self.path.config() != PathConfig::default() {
            return wrong("path.backend direct takes no loss, delay, rate or queue".into(), "use the backend tun");
        }
        if self.path.backend == Backend::Direct && (self.output.packets || self.output.capture) {
            return wrong(
                "path.backend direct has no emulator to record packets".into(),
                "use the backend tun, or no packet records",
            );
        }
        if !(1_000_000..=MAX_DEADLINE_NS).contains(&self.deadline_ns) {
            return wrong(
                format!("deadline_ns {} is not between 1 ms and 1 day", self.deadline_ns),
                "leave it out for 10 minutes",
            );
        }
        if !(10_000_000..=60_000_000_000).contains(&self.heartbeat_ns) {
            return wrong(
                format!("heartbeat_ns {} is not between 10 ms and 1 min", self.heartbeat_ns),
                "leave it out for 250 ms",
            );
        }
        if let Some(problem) = self.placement.problem() {
            return wrong(problem, "leave placement out: the last processor is the emulator's");
        }
        let limits = Limits { ipv6, mtu_bytes: self.path.mtu_bytes };
        self.workload.check(limits).map_err(|e| CellError::bad_cell(e.to_string()).hint(e.hint))?;
        match &self.output.directory {
            None if self.output.packets || self.output.capture || self.output.qlog => {
                wrong("output.packets, .capture and .qlog need output.directory".into(), "name an existing directory")
            }
            Some(directory) if !directory.is_dir() => {
                wrong(format!("output.directory {} is not a directory", directory.display()), "make it first")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rest: &str) -> Result<Cell, CellError> {
        Cell::from_json(&format!(r#"{{"schema": "crosswind.cell/1", {rest}}}"#))
    }

    fn refused(rest: &str) -> String {
        let error = read(rest).expect_err("the cell was taken");
        assert_eq!((error.kind, error.exit_status()), ("bad_cell", 2));
        assert!(error.hint.is_some(), "{error} has no hint");
        error.message
    }

    const ECHO: &str = r#""workload": {"kind": "echo", "transport": "tcp"}"#;

    #[test]
    fn defaults_are_those_of_the_protocol() {
        let cell = read(ECHO).unwrap();
        assert_eq!((cell.seed, cell.path.mtu_bytes, cell.deadline_ns), (1, 1500, 600_000_000_000));
        assert_eq!(cell.host.congestion_control.as_deref(), Some("cubic"));
        let WorkloadConfig::Echo(echo) = cell.workload else { panic!("not an echo") };
        assert_eq!(
            (echo.size_bytes, echo.messages, echo.connections, echo.timeout_ns),
            (1, 100, 1, Some(60_000_000_000))
        );
    }

    #[test]
    fn a_datagram_waits_one_second_and_four_round_trips() {
        let cell = read(
            r#""path": {"forward": {"delay_ns": 10000000}, "reverse": {"delay_ns": 15000000}},
               "workload": {"kind": "echo", "transport": "udp"}"#,
        )
        .unwrap();
        let WorkloadConfig::Echo(echo) = cell.workload else { panic!("not an echo") };
        assert_eq!(echo.timeout_ns, Some(1_100_000_000));
    }

    #[test]
    fn profiles_give_values_and_keys_override_them() {
        let cell = read(&format!(r#"{ECHO}, "host": {{"profile": "freebsd-8", "initial_window": 10}}"#)).unwrap();
        let host = cell.host;
        assert_eq!(
            (host.congestion_control.as_deref(), host.initial_window, host.min_rto_ns),
            (Some("reno"), Some(10), Some(230_000_000))
        );
    }

    #[test]
    fn impossible_cells_are_refused_by_key() {
        let path = |direction: &str| format!(r#"{ECHO}, "path": {{"forward": {direction}}}"#);
        assert!(refused(&path(r#"{"loss": 1.01}"#)).contains("loss 1.01 is not between 0 and 1"));
        assert!(refused(&path(r#"{"rate_bps": 0}"#)).contains("rate_bps 0"));
        assert!(refused(&path(r#"{"delay_ns": -1}"#)).contains("-1"));
        assert!(refused(&path(r#"{"queue": {"packets": 5}}"#)).contains("unlimited link has no queue"));
        assert!(refused(&path(r#"{"los": 0.1}"#)).contains("los is not a known key"));
        assert!(refused(r#""workload": {"kind": "echo", "transport": "smoke"}"#).contains("\"smoke\" is not known"));
        assert!(
            refused(r#""workload": {"kind": "transfer", "transport": "udp", "size_bytes": 1}"#)
                .contains("udp cannot do")
        );
        assert!(refused(r#""workload": {"kind": "echo", "transport": "udp", "size_bytes": 65508}"#).contains("65507"));
        assert!(refused(r#""workload": {"kind": "transfer", "transport": "tcp"}"#).contains("size_bytes is missing"));
        assert!(
            refused(&format!(r#"{ECHO}, "path": {{"family": "ipv6", "mtu_bytes": 1000}}"#)).contains("mtu_bytes 1000")
        );
        assert!(refused(&format!(r#"{ECHO}, "budget": {{"starvation": 2}}"#)).contains("starvation 2"));
        assert!(refused(&format!(r#"{ECHO}, "output": {{"packets": true}}"#)).contains("need output.directory"));
        assert!(
            refused(&format!(r#"{ECHO}, "path": {{"backend": "direct", "forward": {{"loss": 0.1}}}}"#))
                .contains("direct")
        );
    }

    #[test]
    fn other_schemas_are_refused() {
        let error = Cell::from_json(&format!(r#"{{"schema": "crosswind.cell/2", {ECHO}}}"#)).unwrap_err();
        assert!(error.message.contains("crosswind.cell/2"));
    }
}
