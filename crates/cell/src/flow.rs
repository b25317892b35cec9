//! Flows beside a cell's workload: their settings.

use crosswind_host::{Dscp, HostConfig};
use crosswind_path::{DirectionConfig, Hop};
use crosswind_settings::{Group, SettingError, describe};
use crosswind_units::Duration;
use crosswind_workload::{PathFacts, TrafficPattern, WorkloadConfig, number};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::ops::Deref;

/// The port of the first flow's server; the others' follow.
const FIRST_PORT: u16 = 7001;
/// Each flow has threads of its own.
const MOST_FLOWS: u64 = 256;
/// Between two machines each has its own port, open in the firewall.
pub const MOST_FLOWS_AFAR: usize = 16;
/// Of a workload and all flows beside it. Each takes files, a thread or two at each end, and 0.1 MB of a guest's memory.
const MOST_CONNECTIONS: u64 = 2000;
/// Each has hosts of its own. The clients' ports are divided among them.
const MOST_ACCESS_LINKS: usize = 16;
const MAX_ACCESS_DELAY_NS: u64 = 600_000_000_000;
const MAX_ACCESS_RATE_BPS: u64 = 1_000_000_000_000;
/// A transfer as long as its flow.
const ENDLESS_TRANSFER_NS: u64 = 3_600_000_000_000;
const ENDLESS_COUNT: u64 = 100_000_000;
/// Messages at a rate are planned before the first is sent.
const MOST_PLANNED_MESSAGES: u64 = 1_000_000;

/// A flow beside the workload: another workload between the same hosts, or between hosts with an access link of their own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Its own keys, beside its workload's.
    #[serde(flatten)]
    keys: FlowKeys,
    /// Its workload, until it stops.
    pub workload: WorkloadConfig,
}

impl Deref for Flow {
    type Target = FlowKeys;

    fn deref(&self) -> &FlowKeys {
        &self.keys
    }
}

/// A flow beside the workload. It takes the keys of a workload, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowKeys {
    /// What it is called.
    pub name: String,
    /// How many flows like it run; 0: none, to compare with.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 0, max = MOST_FLOWS))]
    pub count: u64,
    /// When it begins, after the path is up.
    #[serde(default)]
    pub start_ns: u64,
    /// By how much it begins later at most: at random, by the seed.
    #[serde(default)]
    pub spread_ns: u64,
    /// When it stops; without it, when the workload has ended.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// TCP congestion control at both ends of it; without it, that of the hosts.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// The codepoint of differentiated services of all its packets, which CAKE sorts by; without it, that of the hosts. Flows over TCP and UDP have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// One-way delay, each way, of an access link between its client and the path. A flow with an access link has a client and a server of
    /// its own, which all of its `count` share.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = MAX_ACCESS_DELAY_NS), extend("default" = 0))]
    pub access_delay_ns: u64,
    /// Rate of its access link, each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_ACCESS_RATE_BPS), extend("default_help" = "unlimited"))]
    pub access_rate_bps: Option<u64>,
    /// Probability that its access link loses a packet, each way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1), extend("unit" = "probability", "default_help" = "0"))]
    pub access_loss: Option<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_zero(value: &u64) -> bool {
    *value == 0
}

impl Flow {
    /// A flow's keys beside its workload's.
    pub fn describe() -> &'static Group {
        describe::<FlowKeys>()
    }

    /// Reads a cell's flows. An error's keys are the cell's.
    pub fn read_all(value: Option<Value>, path: &PathFacts, deadline_ns: u64) -> Result<Vec<Self>, SettingError> {
        let flows = match value {
            None => Vec::new(),
            Some(Value::Array(flows)) => flows,
            Some(_) => return Err(SettingError::new("flows", "is no list", "docs/cell-protocol.md lists every key")),
        };
        let read = |(number, flow)| {
            Self::read(flow, path, deadline_ns).map_err(|error| error.within(&format!("flows.{number}")))
        };
        let flows: Vec<Self> = (0..).zip(flows).map(read).collect::<Result<_, _>>()?;
        let count: u64 = flows.iter().map(|flow| flow.count).sum();
        if count > MOST_FLOWS {
            let hint = format!("at most {MOST_FLOWS} flows run beside a workload; one may have several connections");
            return Err(SettingError::new("flows", format!("are {count} in all"), hint));
        }
        let links = flows.iter().filter(|flow| flow.access_link().is_some()).count();
        if links > MOST_ACCESS_LINKS {
            let hint = format!("at most {MOST_ACCESS_LINKS} flows have one; those of one count share theirs");
            return Err(SettingError::new("flows", format!("have {links} access links"), hint));
        }
        Ok(flows)
    }

    fn read(value: Value, path: &PathFacts, deadline_ns: u64) -> Result<Self, SettingError> {
        let Value::Object(mut own) = value else {
            return Err(SettingError::new("workload", "is no JSON object", "docs/cell-protocol.md lists every key"));
        };
        let Some(Value::Object(mut workload)) = own.shift_remove("workload") else {
            return Err(SettingError::missing("workload", "a flow has a workload of its own"));
        };
        let keys: FlowKeys = crosswind_settings::read(&own)?;
        let FlowKeys { start_ns, spread_ns, stop_ns, access_delay_ns, .. } = keys;
        if stop_ns.is_some_and(|stop_ns| stop_ns <= start_ns.saturating_add(spread_ns)) {
            let hint = "a flow stops after it has begun, with its spread at the latest";
            return Err(SettingError::new("stop_ns", "is not after start", hint));
        }
        let longest_ns = stop_ns.unwrap_or(deadline_ns) - start_ns.min(stop_ns.unwrap_or(deadline_ns));
        make_endless(&mut workload, longest_ns);
        let round_trip = path.round_trip + Duration::from_nanos(2 * access_delay_ns);
        let path = PathFacts { round_trip, ..*path };
        let workload = WorkloadConfig::read(&workload, &path).map_err(|error| error.within("workload"))?;
        if workload.setting("start_after_ns").and_then(Value::as_u64).unwrap_or_default() > 0 {
            let error =
                SettingError::new("start_after_ns", "is set in a flow, which has a start", "set start in its place");
            return Err(error.within("workload"));
        }
        if workload.runs_programs() && keys.congestion_control.is_some() {
            let hint = "host.congestion_control is that of all programs; some have an option of their own (iperf3 -C)";
            let problem = "is set, and a flow of programs has that of the hosts";
            return Err(SettingError::new("congestion_control", problem, hint));
        }
        if workload.connections().is_none() {
            check_programs(&workload).map_err(|error| error.within("workload"))?;
        }
        Ok(Self { keys, workload })
    }

    /// The link between hosts of its own and the path, if it has one.
    pub fn access_link(&self) -> Option<Hop> {
        let loss = self.access_loss.unwrap_or_default();
        if self.count == 0 || (self.access_delay_ns, self.access_rate_bps, loss) == (0, None, 0.0) {
            return None;
        }
        let keys = json!({"delay_ns": self.access_delay_ns, "rate_bps": self.access_rate_bps, "loss": loss});
        let link = keys.as_object().and_then(|keys| DirectionConfig::from_object(keys).ok())?;
        Some(Hop { name: self.name.clone(), forward: link.clone(), reverse: link })
    }

    /// Whether it runs the user's programs.
    pub fn runs_own_programs(&self) -> bool {
        self.workload.connections().is_none()
    }

    /// Whether it is a lone program with a sign of readiness, there to prepare something for the others.
    pub fn is_helper(&self) -> bool {
        self.runs_own_programs() && is_helper(&self.workload)
    }

    /// Whether it does something else with another seed. Args: `hosts`: the seed of theirs, if they have one.
    pub fn is_random(&self, hosts: Option<u64>) -> bool {
        let congestion_control = self.congestion_control.clone();
        let own = HostConfig { congestion_control, random_seed: hosts, ..HostConfig::default() };
        self.spread_ns > 0
            || self.access_loss.is_some_and(|loss| loss > 0.0)
            || self.workload.is_random(hosts.is_some())
            || own.is_random()
    }
}

/// Refuses programs with packets indistinguishable from others' beside a workload, and files nobody brings back.
fn check_programs(workload: &WorkloadConfig) -> Result<(), SettingError> {
    if workload.setting("port").is_some_and(Value::is_number) {
        let hint = "leave it out: {port} in the commands is the flow's own";
        return Err(SettingError::new("port", "is set, and each flow has one of its own", hint));
    }
    for end in ["client", "server"] {
        let arguments =
            || workload.setting(end).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        if arguments().any(|argument| argument.contains("{port:")) {
            let hint = "a flow has one port, {port}: its packets are told apart by it";
            return Err(SettingError::new(end, "has a port with a name, and runs beside a workload", hint));
        }
        if !is_helper(workload) && !arguments().any(|argument| argument.contains("{port}")) {
            let hint = "both commands of a flow have {port} in them, because its packets are told apart by the server's port; a program alone has ready";
            let problem = if workload.setting(end).is_none_or(Value::is_null) { "is missing" } else { "has no {port}" };
            return Err(SettingError::new(end, problem, hint));
        }
        if arguments().any(|argument| argument.contains("{output}")) {
            let hint = "only programs that are the workload of a cell have files that come back";
            return Err(SettingError::new(end, "has {output}, and runs beside a workload", hint));
        }
    }
    Ok(())
}

/// Likewise, by its workload.
fn is_helper(workload: &WorkloadConfig) -> bool {
    workload.is_set("ready") && !workload.is_set("server")
}

/// Where a workload says nothing else, it goes on for as long as its flow does.
fn make_endless(workload: &mut Map<String, Value>, longest_ns: u64) {
    let kind = workload.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(known) = crosswind_workload::kinds().find(|known| known.name == kind) else { return };
    let takes = |name: &str| known.settings().keys.iter().any(|key| key.name == name);
    if takes("count") {
        workload.entry("count").or_insert(ENDLESS_COUNT.into());
    }
    if takes("messages") {
        let rate = workload.get("rate_per_s").and_then(Value::as_f64);
        let is_planned = rate.is_some() || !takes("mode");
        let usual = || known.settings().keys.iter().find(|key| key.name == "rate_per_s")?.default.as_f64();
        let rate = rate.or_else(usual);
        let planned = (rate.unwrap_or(1.0) * longest_ns as f64 / 1e9).ceil() as u64;
        let messages = if is_planned { planned.clamp(1, MOST_PLANNED_MESSAGES) } else { ENDLESS_COUNT };
        workload.entry("messages").or_insert(messages.into());
    }
    if kind == "transfer" && !workload.contains_key("size_bytes") {
        workload.entry("duration_ns").or_insert(ENDLESS_TRANSFER_NS.into());
    }
}

/// The server ports of all a cell's flows: they identify packets.
pub fn ports(flows: &[Flow]) -> Vec<u16> {
    numbered(flows).map(|(number, _)| port(number)).collect()
}

/// The port of this flow's server, on this machine.
pub const fn port(number: u16) -> u16 {
    FIRST_PORT + number - 1
}

/// Refuses more connections at one time than there is room for.
pub fn check_connections(workload: &WorkloadConfig, flows: &[Flow]) -> Result<(), SettingError> {
    let beside = flows.iter().map(|flow| flow.count * u64::from(flow.workload.traffic().connections())).sum::<u64>();
    let all = beside + u64::from(workload.traffic().connections());
    if beside == 0 || all <= MOST_CONNECTIONS {
        return Ok(());
    }
    let problem = format!("and the workload have {all} connections at one time");
    let hint =
        format!("{MOST_CONNECTIONS} is what threads, open files and memory suffice for; lower count or connections");
    Err(SettingError::new("flows", problem, hint))
}

/// Every flow as often as it runs, with its number.
pub fn numbered(flows: &[Flow]) -> impl Iterator<Item = (u16, &Flow)> {
    (1..).zip(instances(flows).map(|(_, flow)| flow))
}

/// Every flow as often as it runs, with its pair of hosts.
pub fn instances(flows: &[Flow]) -> impl Iterator<Item = (usize, &Flow)> {
    let mut pairs = 0;
    flows.iter().flat_map(move |flow| {
        let has_own = flow.access_link().is_some();
        pairs += usize::from(has_own);
        std::iter::repeat_n((if has_own { pairs } else { 0 }, flow), flow.count as usize)
    })
}

/// All a cell's flows' traffic, for a forecast.
pub fn traffic(flows: &[Flow]) -> Vec<TrafficPattern> {
    flows.iter().flat_map(|flow| std::iter::repeat_n(flow.workload.traffic(), flow.count as usize)).collect()
}
