//! Every workload there is: one line each. And the workload of a cell, read and checked.

use crate::needs::ConnectionNeeds;
use crate::peer::Peers;
use crate::probes;
use crate::workload::{PathFacts, Runnable, WorkloadSettings};
use crosswind_settings::{Code, Group, KeyType, SettingError, check, describe, describe_with, read};
use crosswind_transport::{Features, Payload, Resumption, TransportRef, all, find};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

static KINDS: &[WorkloadKind] = &[
    WorkloadKind::of::<crate::echo::Echo>(),
    WorkloadKind::of::<crate::transfer::Transfer>(),
    WorkloadKind::of::<crate::connect::Connect>(),
    WorkloadKind::of::<crate::multiplex::Multiplex>(),
    WorkloadKind::of::<crate::page::Page>(),
    WorkloadKind::of::<crate::program::Program>(),
];

/// A kind of workload.
#[derive(Clone, Copy)]
pub struct WorkloadKind {
    /// Its name in a cell.
    pub name: &'static str,
    /// The meaning of a row in the samples.
    pub sample: &'static str,
    fits: fn(&Features) -> bool,
    settings: fn() -> &'static Group,
    read: fn(&Map<String, Value>, &PathFacts) -> Result<WorkloadConfig, SettingError>,
}

/// Every kind, in the order of the catalogue.
pub fn kinds() -> impl Iterator<Item = &'static WorkloadKind> {
    KINDS.iter()
}

impl WorkloadKind {
    const fn of<W: WorkloadSettings>() -> Self {
        Self { name: W::KIND, sample: W::SAMPLE, fits: W::fits, settings: group_of::<W>, read: read_kind::<W> }
    }

    /// Its description and keys.
    pub fn settings(&self) -> &'static Group {
        (self.settings)()
    }

    /// Its possible transports.
    pub fn transports(&self) -> impl Iterator<Item = TransportRef> {
        all().filter(|transport| (self.fits)(&transport.features()))
    }
}

/// The workload of a cell, with every default filled in. In a cell it stands as its settings.
#[derive(Clone)]
pub struct WorkloadConfig {
    settings: Map<String, Value>,
    workload: Arc<dyn Runnable>,
    peers: Peers,
}

impl WorkloadConfig {
    /// Reads and checks the workload of a cell with this path. An error's keys are the workload's.
    pub fn read(object: &Map<String, Value>, path: &PathFacts) -> Result<Self, SettingError> {
        let names = || kinds().map(|kind| kind.name.to_owned()).collect::<Vec<_>>();
        let hint = || format!("one of {}", names().join(", "));
        let asked = object.get("kind").ok_or_else(|| SettingError::missing("kind", hint()))?;
        let kind = kinds()
            .find(|kind| asked == kind.name)
            .ok_or_else(|| SettingError::new("kind", format!("{asked} is not known"), hint()))
            .map_err(|error| error.code(Code::UnknownChoice { choices: names() }))?;
        let mut own = object.clone();
        own.shift_remove("kind");
        (kind.read)(&own, path)
    }

    /// The programs in place of its client and its server.
    pub const fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Whether any of its ends is not Crosswind's own.
    pub fn runs_programs(&self) -> bool {
        self.peers.any() || self.workload.connections().is_none()
    }

    /// One of its settings, with its default filled in.
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(name)
    }

    /// Whether one of its settings has a value.
    pub fn is_set(&self, name: &str) -> bool {
        self.setting(name).is_some_and(|value| !value.is_null())
    }

    /// Its settings as a peer is told them.
    pub fn settings_for_peers(&self) -> Map<String, Value> {
        let own = |(name, _): &(&String, &Value)| !Peers::names().contains(&name.as_str());
        self.settings.iter().filter(own).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Whether another seed changes it; third-party programs may do anything. Args: `is_seeded`: whether what its hosts draw is
    /// the same with every seed.
    pub fn is_random(&self, is_seeded: bool) -> bool {
        self.runs_programs() || (!is_seeded && self.workload.is_random())
    }

    /// Whether samples count each message's own packets dropped by the path. Packets are attributed to messages by our
    /// own client's hand-over to the kernel: size and time.
    pub fn wants_own_drops(&self) -> bool {
        !self.peers.any() && self.workload.wants_own_drops()
    }
}

impl Deref for WorkloadConfig {
    type Target = dyn Runnable;

    fn deref(&self) -> &Self::Target {
        self.workload.as_ref()
    }
}

impl PartialEq for WorkloadConfig {
    fn eq(&self, other: &Self) -> bool {
        self.settings == other.settings
    }
}

impl fmt::Debug for WorkloadConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.workload.fmt(formatter)
    }
}

impl Serialize for WorkloadConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.settings.serialize(serializer)
    }
}

fn read_kind<W: WorkloadSettings>(
    object: &Map<String, Value>,
    path: &PathFacts,
) -> Result<WorkloadConfig, SettingError> {
    let group = group_of::<W>();
    check_transport_name::<W>(object, group)?;
    check(object, &group.keys)?;
    let (own, of_peers) = split(object, W::TAKES_PEERS);
    let peers: Peers = read(&of_peers)?;
    peers.check()?;
    let mut settings: W = read(&own)?;
    settings.fill_in(path);
    if let Some(needs) = settings.connections() {
        check_fit::<W>(needs.transport)?;
        check_needs(&needs)?;
        settings.check()?;
        settings.check_peers(&peers)?;
        check_size(&needs, path)?;
    } else {
        settings.check()?;
    }
    let Ok(Value::Object(filled_in)) = serde_json::to_value(&settings) else {
        unreachable!("the settings of a workload are an object");
    };
    let mut with_kind = Map::from_iter([("kind".to_owned(), W::KIND.into())]);
    with_kind.extend(filled_in);
    if let (true, Ok(Value::Object(peers))) = (W::TAKES_PEERS, serde_json::to_value(&peers)) {
        with_kind.extend(peers);
    }
    Ok(WorkloadConfig { settings: with_kind, workload: Arc::new(settings), peers })
}

/// A kind of workload's description, and its keys: its own and, if peers can take part, theirs.
fn group_of<W: WorkloadSettings>() -> &'static Group {
    if W::TAKES_PEERS { describe_with::<W, Peers>() } else { describe::<W>() }
}

/// The workload's own keys, and its peers' if it takes any.
fn split(object: &Map<String, Value>, takes_peers: bool) -> (Map<String, Value>, Map<String, Value>) {
    object.clone().into_iter().partition(|(name, _)| !takes_peers || !Peers::names().contains(&name.as_str()))
}

/// Refuses an unknown or missing transport, with the names of the known ones.
fn check_transport_name<W: WorkloadSettings>(object: &Map<String, Value>, group: &Group) -> Result<(), SettingError> {
    for key in group.keys.iter().filter(|key| key.key_type == KeyType::Transport) {
        match object.get(&key.name) {
            None if key.required => {
                return Err(SettingError::missing(&key.name, format!("one of {}", able(W::fits))));
            }
            Some(Value::String(name)) if find(name).is_err() => {
                let choices = all().map(|transport| transport.name().to_owned()).collect();
                let problem = format!("{name} is not one of {}", able(|_| true));
                return Err(SettingError::new(&key.name, problem, &key.help).code(Code::UnknownChoice { choices }));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_fit<W: WorkloadSettings>(transport: TransportRef) -> Result<(), SettingError> {
    if W::fits(&transport.features()) {
        return Ok(());
    }
    let problem = format!("{transport} cannot do {}", W::KIND);
    Err(SettingError::new("transport", problem, format!("transports that can: {}", able(W::fits))))
}

/// Whether the transport has the capabilities needed for its connections.
fn check_needs(needs: &ConnectionNeeds) -> Result<(), SettingError> {
    let (name, features) = (needs.transport.name(), needs.transport.features());
    let refuse = |key: &str, problem: String, can: fn(&Features) -> bool| {
        Err(SettingError::new(key, problem, format!("transports that can: {}", able(can))))
    };
    if needs.payload == Payload::Text && !features.text {
        return refuse("payload", format!("is text, and {name} has only bytes"), |f| f.text);
    }
    if needs.resumption != Resumption::None && !features.secure {
        return refuse("resumption", format!("is set, and {name} has no sessions"), |f| f.secure);
    }
    if needs.resumption == Resumption::EarlyData && !features.early_data {
        let problem = format!("is 0-rtt, and {name} sends no data before its handshake is done");
        return refuse("resumption", problem, |f| f.early_data);
    }
    if needs.probes && !probes::can_share(&features) {
        let problem = format!("is set, and {name} has no requests beside a transfer on one connection");
        return refuse("probe_rate_per_s", problem, probes::can_share);
    }
    if needs.polling && !features.polling {
        return refuse("polling", format!("is set, and {name} has no polling"), |f| f.polling);
    }
    Ok(())
}

/// Whether a message can be sent whole.
fn check_size(needs: &ConnectionNeeds, path: &PathFacts) -> Result<(), SettingError> {
    let limit = needs.transport.largest_message(path.ipv6, path.mtu_bytes);
    match (needs.message_bytes, limit) {
        (Some(bytes), Some(limit)) if bytes > limit as u64 => Err(SettingError::new(
            "size_bytes",
            format!("{bytes} is over the limit of {}: {limit} bytes", needs.transport),
            "make the message smaller, or use a stream transport such as tcp",
        )),
        _ => Ok(()),
    }
}

/// The names of the transports with a feature.
fn able(has: impl Fn(&Features) -> bool) -> String {
    all()
        .filter(|transport| has(&transport.features()))
        .map(|transport| transport.name())
        .collect::<Vec<_>>()
        .join(", ")
}
