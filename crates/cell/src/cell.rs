//! The cell as it is read: JSON in, checked, with every default filled in.

use crate::demand::Demand;
use crate::flow::{MOST_FLOWS_AFAR, check_connections, numbered, ports};
use crate::sections::{Sections, read_files_within, read_lists, read_section, read_trace};
use crate::{CellError, Flow};
use crosswind_host::{Backend, ClientStreams, Dscp, Family, HostClock, HostConfig, Placement, TickPhase};
use crosswind_ledger::Budget;
use crosswind_netem::Plan;
use crosswind_path::{DirectionConfig, PathConfig, Side};
use crosswind_settings::{Group, SettingError, describe};
use crosswind_transport::Carrier;
use crosswind_units::Seed;
use crosswind_workload::{PathFacts, TrafficPattern, WorkloadConfig, number, small};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::ops::Deref;
use std::path::PathBuf;

/// The only supported schema.
const SCHEMA: &str = "crosswind.cell/1";
const MIN_DEADLINE_NS: u64 = 1_000_000;
/// A day: longer is a mistake in units.
const MAX_DEADLINE_NS: u64 = 86_400_000_000_000;
const MIN_HEARTBEAT_NS: u64 = 10_000_000;
const MAX_HEARTBEAT_NS: u64 = 60_000_000_000;
/// Ethernet's.
pub const DEFAULT_MTU: u32 = 1500;
/// RFC 791: every host's minimum.
const MIN_MTU: u32 = 576;
/// RFC 8200: likewise.
const MIN_MTU_IPV6: u32 = 1280;
/// RFC 9000, section 14.1: the first datagrams have 1200 bytes, and with them go headers of UDP and IPv4. IPv6 always has room.
const MIN_MTU_QUIC: u32 = 1200 + 8 + 20;
/// The maximum lateness of a guest's emulator when many packets leave at once: each reads the clock, which takes a
/// nanosecond.
const DELAY_ERROR_OF_GUESTS_NS: u64 = 100_000;
/// The limit of an IP packet's length field.
const MAX_MTU: u32 = 65_535;

/// One combination of levels, to be run once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Always `crosswind.cell/1`.
    pub schema: String,
    /// The caller's name for it.
    pub id: String,
    /// Every random decision derives from it.
    pub seed: u64,
    /// The network.
    pub path: PathSection,
    /// Both hosts.
    pub host: HostConfig,
    /// The workload across it.
    pub workload: WorkloadConfig,
    /// The flows beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// The files to write.
    pub output: Output,
    /// The emulation's error budget.
    pub budget: Budget,
    /// Where its threads run, and whether other cells run beside it.
    pub placement: Placement,
    /// Time between two progress events.
    pub heartbeat_ns: u64,
    /// Bound on the whole cell.
    pub deadline_ns: u64,
}

/// The keys of a cell that stand by themselves.
#[derive(Debug, Deserialize, JsonSchema)]
struct OwnKeys {
    /// Schema of the cell.
    schema: String,
    /// The caller's name for the cell.
    #[serde(default)]
    id: String,
    /// Every random decision derives from it.
    #[serde(default = "number::<1>")]
    seed: u64,
    /// Time between two progress events.
    #[serde(default = "number::<250_000_000>")]
    #[schemars(range(min = MIN_HEARTBEAT_NS, max = MAX_HEARTBEAT_NS))]
    heartbeat_ns: u64,
    /// Bound on the whole cell.
    #[serde(default = "number::<600_000_000_000>")]
    #[schemars(range(min = MIN_DEADLINE_NS, max = MAX_DEADLINE_NS))]
    deadline_ns: u64,
}

/// The network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathSection {
    #[serde(flatten)]
    keys: PathKeys,
    /// The emulation in each direction.
    #[serde(flatten)]
    pub directions: PathConfig,
}

impl Deref for PathSection {
    type Target = PathKeys;

    fn deref(&self) -> &PathKeys {
        &self.keys
    }
}

/// The network between the two hosts: what both directions share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathKeys {
    /// What lies between the hosts: tun (the emulator), netem (the kernel's own emulation; docs/netem.md), direct (a veth pair: no loss, delay, rate or queue) or network (the network that is really there).
    #[serde(default)]
    pub backend: Backend,
    /// Address family of the path.
    #[serde(default)]
    pub family: Family,
    /// Largest IP packet (IPv4: 576 or more, IPv6: 1280 or more).
    #[serde(default = "small::<DEFAULT_MTU>")]
    #[schemars(range(min = MIN_MTU, max = MAX_MTU))]
    pub mtu_bytes: u32,
    /// Of backend network: where crosswind serve listens, as HOST:PORT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// What is written where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[allow(clippy::struct_excessive_bools)] // each is a file or a section of its own
pub struct Output {
    /// An existing directory; without one no file is written.
    pub directory: Option<PathBuf>,
    /// Write packets.arrow.
    pub packets: bool,
    /// Write spent.arrow, what the time of each exchange was spent on, and pieces.arrow, that of the slowest in the order of time; of the connections of programs and pages the same, in tables of their own.
    pub spent: bool,
    /// With spent, have programs and peers write the secrets of their connections (SSLKEYLOGFILE) where only the cell reads them, to see what is in their packets of QUIC.
    pub keys: bool,
    /// Write client.pcapng and server.pcapng, and keys.log with which they can be read.
    pub capture: bool,
    /// Write client.qlog and server.qlog, of QUIC.
    pub qlog: bool,
    /// Sample where the hosts' processor time goes.
    pub profile: bool,
    /// Descriptor of the caller's that the client of the workload program reads; null: it reads nothing. All three, or none.
    #[schemars(range(min = 3))]
    pub client_input: Option<u16>,
    /// Descriptor of the caller's that it writes to; null: the file client.out.
    #[schemars(range(min = 3))]
    pub client_output: Option<u16>,
    /// Descriptor of the caller's that it writes errors to; null: the file client.err.
    #[schemars(range(min = 3))]
    pub client_errors: Option<u16>,
    /// Whether it gets the terminal that is one of these; the terminal's keys for signals are then its own.
    pub client_foreground: bool,
    /// Keep all that the client of the workload program prints, in virtual time up to 1 GB; else, of what is more than 32 MiB, the first and
    /// the last 16 MiB.
    pub client_whole: bool,
}

impl Output {
    /// The caller's streams for the client of the workload program.
    pub const fn client_streams(&self) -> Option<ClientStreams> {
        match (self.client_input, self.client_output, self.client_errors) {
            (Some(input), Some(output), Some(errors)) => {
                Some(ClientStreams { input, output, errors, foreground: self.client_foreground })
            }
            _ => None,
        }
    }
}

/// The budget. In virtual time packets leave within nanoseconds, and a default for machines would hide faults.
fn read_budget(given: &Map<String, Value>, clock: HostClock) -> Result<Budget, SettingError> {
    let mut budget = Budget::from_object(given).map_err(|error| error.within("budget"))?;
    if clock == HostClock::Virtual && !given.contains_key("delay_error_p99_ns") {
        budget.delay_error_p99_ns = DELAY_ERROR_OF_GUESTS_NS;
    }
    Ok(budget)
}

impl Cell {
    /// Reads and checks a cell, and fills in defaults.
    pub fn from_json(text: &str) -> Result<Self, CellError> {
        let value = serde_json::from_str(text).map_err(|error| {
            CellError::bad_cell(format!("the cell is not what it should be: {error}"))
                .hint("give it as one JSON object")
        })?;
        Self::from_value(value)
    }

    /// Likewise, from parsed JSON.
    pub fn from_value(value: Value) -> Result<Self, CellError> {
        let Value::Object(object) = value else {
            return Err(CellError::bad_cell("the cell is not what it should be: it is no JSON object")
                .hint("docs/cell-protocol.md lists every key"));
        };
        let mut sections = Sections::new(object);
        let path = sections.take("path")?;
        let host = sections.take("host")?;
        let workload = sections.take_required("workload")?;
        let flows = sections.take_any("flows");
        let output = sections.take("output")?;
        let budget = sections.take("budget")?;
        let placement = sections.take("placement")?;
        let own: OwnKeys = crosswind_settings::read(&sections.rest())?;
        if own.schema != SCHEMA {
            let problem = format!("is \"{}\", this program reads \"{SCHEMA}\"", own.schema);
            return Err(SettingError::new("schema", problem, "use the crosswind-cell of the same version").into());
        }
        let mut path = PathSection::read(path)?;
        let workload = WorkloadConfig::read(&workload, &path.facts()).map_err(|error| error.within("workload"))?;
        let mut hosts = HostConfig::from_object(&host).map_err(|error| error.within("host"))?.resolved();
        if workload.setting("probe_rate_per_s").is_some() {
            let problem = "is set, and the workload of a cell has no requests beside its transfers";
            let hint = "make the transfer a flow that runs beside a workload";
            return Err(SettingError::new("workload.probe_rate_per_s", problem, hint).into());
        }
        if workload.connections().is_none() {
            hosts = hosts.for_programs(&host).map_err(|error| error.within("host"))?;
        }
        let flows = Flow::read_all(flows, &path.facts(), own.deadline_ns)?;
        check_connections(&workload, &flows)?;
        path.directions.access = flows.iter().filter_map(Flow::access_link).collect();
        let cell = Self {
            schema: own.schema,
            id: own.id,
            seed: own.seed,
            budget: read_budget(&budget, hosts.clock)?,
            host: hosts,
            workload,
            flows,
            output: read_section("output", &output)?,
            placement: read_lists("placement", placement)?,
            path,
            heartbeat_ns: own.heartbeat_ns,
            deadline_ns: own.deadline_ns,
        };
        cell.placement.check().map_err(|error| error.within("placement"))?;
        cell.check()?;
        Ok(cell)
    }

    /// The hosts with their kernel settings. A route's congestion control would replace every socket's, so there is
    /// none if a flow has its own: sockets are set one by one.
    pub(crate) fn host_of_routes(&self) -> HostConfig {
        let is_shared = self.flows.iter().all(|flow| self.has_congestion_control_of_hosts(flow));
        let congestion_control = self.host.congestion_control.clone().filter(|_| is_shared);
        HostConfig { congestion_control, ..self.host.clone() }
    }

    /// Programs' congestion control in the namespace, if the route leaves it to the flows' sockets.
    pub(crate) fn congestion_control_of_programs(&self) -> Option<String> {
        let is_left_out = self.has_programs() && self.host_of_routes().congestion_control.is_none();
        self.host.congestion_control.clone().filter(|_| is_left_out)
    }

    fn has_programs(&self) -> bool {
        let flows = self.flows.iter().map(|flow| &flow.workload);
        flows.chain([&self.workload]).any(WorkloadConfig::runs_programs)
    }

    fn has_congestion_control_of_hosts(&self, flow: &Flow) -> bool {
        flow.congestion_control.is_none() || flow.congestion_control == self.host.congestion_control
    }

    /// The input of a forecast.
    pub fn demand(&self) -> Demand {
        Demand::new(&self.path.directions, &self.workload, &self.flows)
    }

    /// Whether nothing is left to chance, so in virtual time every repetition comes out the same.
    pub fn is_exact(&self) -> bool {
        !(self.path.directions.is_random() || self.has_random_hosts())
    }

    /// Whether something beside the path is left to chance.
    fn has_random_hosts(&self) -> bool {
        let seed = self.host.random_seed;
        self.host.is_random()
            || self.workload.is_random(seed.is_some())
            || self.flows.iter().any(|flow| flow.is_random(seed))
    }

    /// Whether in virtual time repetitions that lose the same packets come out the same.
    pub fn repeats_losses(&self) -> bool {
        let path = &self.path.directions;
        !self.has_random_hosts() && path.access.is_empty() && path.without_index_losses().is_some()
    }

    fn check(&self) -> Result<(), SettingError> {
        let refuse = |key: &str, problem: &str, hint: &str| Err(SettingError::new(key, problem, hint));
        let wants_packets = self.output.packets || (self.output.capture && self.path.backend != Backend::Network);
        if !self.path.backend.is_emulated() && wants_packets {
            return refuse(
                "path.backend",
                "has no emulator to record packets",
                "use the backend tun, or no packet records",
            );
        }
        if let Some(number) = self.flows.iter().position(|flow| flow.access_link().is_some())
            && !self.path.backend.is_emulated()
        {
            let key = format!("flows.{number}.access_delay_ns");
            return refuse(
                &key,
                "asks for an access link, which only the emulator has",
                "use the backend tun, or no access_delay, access_rate and access_loss",
            );
        }
        if self.path.backend == Backend::Network {
            self.check_network()?;
        }
        if self.host.emulator.is_some() {
            self.check_emulator()?;
        }
        if self.host.tick_phase == TickPhase::Seed && self.host.clock == HostClock::Real {
            return refuse(
                "host.tick_phase",
                "is seed, and on the machine's clock a cell begins whenever it does",
                "leave it out",
            );
        }
        if self.host.random_seed.is_some() && self.host.clock == HostClock::Real {
            let problem = "is set, and on the machine's clock hosts draw what they do";
            return refuse("host.random_seed", problem, "leave it out, or set host.clock to virtual");
        }
        self.check_mtu()?;
        self.check_dscp()?;
        let port = self.workload.setting("port").and_then(Value::as_u64);
        if port.is_some_and(|port| ports(&self.flows).into_iter().any(|own| u64::from(own) == port)) {
            let problem = "is that of a flow beside the program, whose servers listen on 7001 and the ports above it";
            return refuse("workload.port", problem, "take another port");
        }
        if self.workload.is_set("ready") && self.workload.connections().is_none() && !self.workload.is_set("server") {
            return refuse("workload.ready", "is set, and there is no server to wait for", "leave it out");
        }
        let streams = [self.output.client_input, self.output.client_output, self.output.client_errors];
        if streams.iter().any(Option::is_some) && !streams.iter().all(Option::is_some) {
            return refuse(
                "output.client_input",
                "is one of three descriptors, and not all are there",
                "name all three",
            );
        }
        match &self.output.directory {
            None if self.output.packets || self.output.spent || self.output.capture || self.output.qlog => refuse(
                "output.directory",
                "is missing: packets, spent, capture and qlog need an output.directory",
                "name an existing directory",
            ),
            Some(directory) if !directory.is_dir() => {
                let problem = format!("{} is not a directory", directory.display());
                refuse("output.directory", &problem, "make it first")
            }
            _ => Ok(()),
        }
    }

    /// Refuses anything impossible on unchanged machines, or not served to others.
    fn check_network(&self) -> Result<(), SettingError> {
        let refuse = |key: &str, problem: &str, hint: &str| Err(SettingError::new(key, problem, hint));
        if !self.host.is_of_sockets() {
            let kept: Vec<&str> = HostConfig::keys_of_sockets().collect();
            let hint = format!("of host, leave what is set on sockets and connections: {}", kept.join(", "));
            return refuse("host", "changes more than sockets, and the machines of a network stay as they are", &hint);
        }
        if self.path.mtu_bytes != DEFAULT_MTU {
            return refuse("path.mtu_bytes", "is set, and the network's own is not to be changed", "leave it out");
        }
        let flows = numbered(&self.flows).count();
        if flows > MOST_FLOWS_AFAR {
            let problem = format!("are {flows} in all, and another machine serves {MOST_FLOWS_AFAR}");
            return refuse("flows", &problem, "take fewer; one flow may have several connections");
        }
        for (number, flow) in self.flows.iter().enumerate() {
            Self::check_served(&flow.workload).map_err(|error| error.within(&format!("flows.{number}")))?;
        }
        Self::check_served(&self.workload)
    }

    /// Refuses a workload another machine does not serve.
    fn check_served(workload: &WorkloadConfig) -> Result<(), SettingError> {
        let refuse = |key: &str, problem: &str, hint: &str| Err(SettingError::new(key, problem, hint));
        let Some(needs) = workload.connections() else {
            return refuse(
                "workload.kind",
                "is program, and no program is run on another machine",
                "use crosswind exec",
            );
        };
        if workload.peers().any() {
            let key = if workload.peers().client.is_some() { "workload.client" } else { "workload.server" };
            return refuse(key, "is a peer, and both ends of a network are Crosswind's own", "leave it out");
        }
        // With a forged source address somebody could make the server send more than it was sent.
        let plain_udp = needs.transport.features().carrier == Carrier::Udp;
        match workload.traffic() {
            TrafficPattern::Exchanges { request_bytes, reply_bytes, .. }
                if plain_udp && reply_bytes > request_bytes =>
            {
                let problem = "has answers that are larger than the requests, over plain UDP, to a server that anybody can send to";
                refuse("workload.direction", problem, "use a transport with a handshake, such as quic-datagram")
            }
            _ => Ok(()),
        }
    }

    /// Refuses a place of the emulator where there is none to choose.
    fn check_emulator(&self) -> Result<(), SettingError> {
        let refuse = |problem: &str| Err(SettingError::new("host.emulator", problem, "leave it out"));
        if !self.path.backend.is_emulated() {
            refuse(&format!("is set, and the backend {} has no emulator", self.path.backend.name()))
        } else if self.host.clock == HostClock::Real {
            refuse("is set, and on the machine's clock the emulator is always a thread of the cell")
        } else {
            Ok(())
        }
    }

    /// Refuses a codepoint for packets other than the cell's own TCP and UDP sockets'.
    fn check_dscp(&self) -> Result<(), SettingError> {
        let beside = self.flows.iter().enumerate().map(|(number, flow)| {
            let key = if flow.dscp.is_some() { format!("flows.{number}.dscp") } else { "host.dscp".to_owned() };
            (key, &flow.workload, flow.dscp.or(self.host.dscp))
        });
        let workload = ("host.dscp".to_owned(), &self.workload, self.host.dscp);
        for (key, workload, dscp) in std::iter::once(workload).chain(beside) {
            if dscp.is_none_or(|it| it == Dscp::Cs0) {
                continue;
            }
            let problem = match workload.connections() {
                Some(needs) if needs.transport.features().carrier == Carrier::Quic => {
                    format!("is set, and packets of {} have none: its library sets that octet itself", needs.transport)
                }
                Some(_) if !workload.peers().any() => continue,
                _ => "is set, and a program sets the codepoint of its packets itself".to_owned(),
            };
            let hint = "leave it out, or set `dscp = \"cs0\"` (none) in a [[flow]] that cannot have it";
            return Err(SettingError::new(key, problem, hint));
        }
        Ok(())
    }

    /// Refuses QUIC where its first datagrams do not fit: it would wait for an answer until its timeout.
    fn check_mtu(&self) -> Result<(), SettingError> {
        match self.workload.connections() {
            Some(needs)
                if needs.transport.features().carrier == Carrier::Quic && self.path.least_mtu() < MIN_MTU_QUIC =>
            {
                let problem = format!(
                    "{} is too small for {}: the first packets of QUIC have {MIN_MTU_QUIC} bytes",
                    self.path.least_mtu(),
                    needs.transport
                );
                let hint = format!("raise it to {MIN_MTU_QUIC} or more, or use a transport over TCP");
                Err(SettingError::new("path.mtu_bytes", problem, hint))
            }
            _ => Ok(()),
        }
    }
}

impl PathSection {
    /// The keys common to both directions.
    pub fn describe() -> &'static Group {
        describe::<PathKeys>()
    }

    /// The emulator's path: unless set otherwise, its MTU is the hosts' devices'.
    pub fn emulated(&self) -> PathConfig {
        let mut config = self.directions.clone();
        for side in Side::BOTH {
            for hop in config.hops.iter_mut().chain(&mut config.access) {
                hop.side_mut(side).mtu.link_mtu_bytes.get_or_insert(self.mtu_bytes);
            }
        }
        config
    }

    /// The path MTU over both directions.
    fn least_mtu(&self) -> u32 {
        let links = Side::BOTH.map(|side| self.directions.least_mtu(side));
        links.into_iter().flatten().fold(self.mtu_bytes, u32::min)
    }

    fn read(section: serde_json::Map<String, Value>) -> Result<Self, SettingError> {
        let mut sections = Sections::new(section);
        let within = |error: SettingError| error.within("path");
        let keys = DirectionConfig::keys();
        let mut emulated = serde_json::Map::new();
        for name in ["forward", "reverse", "hops", "changes"] {
            if let Some(mut value) = sections.take_any(name) {
                read_files_within(&mut value, &keys).map_err(|error| error.within(name).within("path"))?;
                emulated.insert(name.to_owned(), value);
            }
        }
        let directions = PathConfig::read(&emulated, &read_trace).map_err(within)?;
        let path = Self { keys: read_section("path", &sections.rest())?, directions };
        path.check().map_err(within)?;
        Ok(path)
    }

    fn check(&self) -> Result<(), SettingError> {
        if self.family == Family::Ipv6 && self.mtu_bytes < MIN_MTU_IPV6 {
            let problem = format!("{} is not between {MIN_MTU_IPV6} and {MAX_MTU}", self.mtu_bytes);
            return Err(SettingError::new(
                "mtu_bytes",
                problem,
                "every host has to take 1280 bytes of IPv6 (RFC 8200)",
            ));
        }
        for side in Side::BOTH {
            let least = self.directions.least_mtu(side);
            if let Some(bytes) = least.filter(|bytes| self.family == Family::Ipv6 && *bytes < MIN_MTU_IPV6) {
                let problem = format!("{bytes} is not between {MIN_MTU_IPV6} and {MAX_MTU}");
                let hint = "every link has to take 1280 bytes of IPv6 (RFC 8200)";
                return Err(SettingError::new("link_mtu_bytes", problem, hint).within(side.name()));
            }
        }
        match self.backend {
            Backend::Tun => {}
            Backend::Netem => {
                Plan::new(&self.directions, self.mtu_bytes, Seed(0))?;
            }
            Backend::Direct | Backend::Network if self.directions == PathConfig::default() => {}
            Backend::Direct | Backend::Network => {
                let name = self.backend.name();
                let problem = format!("{name} has no emulator: it takes no loss, delay, rate or queue");
                return Err(SettingError::new("backend", problem, "use the backend tun"));
            }
        }
        let hint = "path.backend network and path.server go together";
        match (&self.server, self.backend == Backend::Network) {
            (None, true) => Err(SettingError::missing("server", hint)),
            (Some(_), false) => Err(SettingError::new("server", "is set, and the backend is not network", hint)),
            _ => Ok(()),
        }
    }

    /// Its facts for a workload.
    pub fn facts(&self) -> PathFacts {
        PathFacts {
            ipv6: self.family == Family::Ipv6,
            mtu_bytes: self.mtu_bytes,
            round_trip: self.directions.round_trip(),
        }
    }
}
