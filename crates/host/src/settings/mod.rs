//! Settings of both hosts: a profile gives every value, keys override it, the kernel applies them, and they are read back.

mod choices;
mod dscp;
pub(crate) mod kernel;
pub(crate) mod profiles;
mod tick_phase;

pub use choices::{EmulatorPlace, HostClock, HostProfile, MtuProbing, Qdisc};
pub use dscp::Dscp;
pub use tick_phase::TickPhase;

use crosswind_settings::{Key, SettingError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const MIN_BUFFER: u32 = 4096;
const MAX_BUFFER: u32 = 1 << 30;
/// A connection of HTTP/2 begins with it, and has no way to take less (RFC 9113, section 6.9.2).
const MIN_CONNECTION_WINDOW: u32 = 65_535;

crosswind_settings::layers! {
/// The two hosts. A key that is set overrides the profile's value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("default_help" = "as the profile has it, else the kernel's default"))]
pub struct HostConfig {
    /// A bundle of settings with a name.
    pub profile: HostProfile,
    /// TCP congestion control, as the kernel names it.
    #[schemars(extend("on_sockets" = true))]
    pub congestion_control: Option<String>,
    /// Whether small segments are sent at once (`TCP_NODELAY`).
    #[schemars(extend("set_by_programs" = "TCP_NODELAY on its sockets"))]
    pub nodelay: Option<bool>,
    /// TCP selective acknowledgements (RFC 2018).
    pub sack: Option<bool>,
    /// TCP timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// TCP window scaling (RFC 7323).
    pub window_scaling: Option<bool>,
    /// TCP tail loss probes (RFC 8985).
    pub tail_loss_probe: Option<bool>,
    /// Whether TCP returns to slow start after an idle time.
    pub slow_start_after_idle: Option<bool>,
    /// Send buffer of a socket (`SO_SNDBUF`); of programs, that of each TCP socket, by `tcp_wmem`.
    #[schemars(range(min = MIN_BUFFER, max = MAX_BUFFER), extend("on_sockets" = true))]
    pub send_buffer_bytes: Option<u32>,
    /// Receive buffer of a socket (`SO_RCVBUF`); of programs, that of each TCP socket, by `tcp_rmem`.
    #[schemars(range(min = MIN_BUFFER, max = MAX_BUFFER), extend("on_sockets" = true))]
    pub receive_buffer_bytes: Option<u32>,
    /// TCP initial congestion window.
    #[schemars(range(min = 1, max = 1000), extend("unit" = "segments"))]
    pub initial_window: Option<u32>,
    /// TCP minimum retransmission timeout.
    #[schemars(range(min = 1_000_000_u64, max = 120_000_000_000_u64))]
    pub min_rto_ns: Option<u64>,
    /// Whether TCP asks for explicit congestion notification, so that its packets are marked rather than dropped (`net.ipv4.tcp_ecn`).
    pub ecn: Option<bool>,
    /// Receive buffer of a TCP socket that sets none: the least, the first and the greatest size, in bytes (`net.ipv4.tcp_rmem`).
    pub tcp_rmem: Option<String>,
    /// Send buffer of a TCP socket that sets none: the least, the first and the greatest size, in bytes (`net.ipv4.tcp_wmem`).
    pub tcp_wmem: Option<String>,
    /// Queueing discipline of each host's device, as `net.core.default_qdisc` sets it.
    pub default_qdisc: Option<Qdisc>,
    /// How often TCP retransmits before it ends a connection, counted as Linux does: 15 take 924.6 s, and more after long round trips (`net.ipv4.tcp_retries2`).
    #[schemars(range(min = 1, max = 255))]
    pub tcp_retries2: Option<u32>,
    /// How long sent data may be unacknowledged before TCP ends the connection (`TCP_USER_TIMEOUT`); 0 leaves that to `tcp_retries2`.
    #[schemars(range(min = 0, max = 86_400_000_000_000_u64), extend("set_by_programs" = "TCP_USER_TIMEOUT on its sockets"))]
    pub tcp_user_timeout_ns: Option<u64>,
    /// After how much idle time TCP probes the other end, and again until there is an answer: nine probes without one end the connection (`SO_KEEPALIVE`, whole seconds). 0 is never.
    #[schemars(range(min = 0, max = 32_767_000_000_000_u64), extend("set_by_programs" = "SO_KEEPALIVE on its sockets"))]
    pub tcp_keep_alive_ns: Option<u64>,
    /// When TCP searches for the largest packet that passes, without ICMP: never, after a black hole, or always (`net.ipv4.tcp_mtu_probing`).
    pub tcp_mtu_probing: Option<MtuProbing>,
    /// How TCP detects losses, a sum of 1 (RACK), 2 (its window for reordering stays at a quarter of the round trip) and 4 (it does not count packets) (`net.ipv4.tcp_recovery`).
    #[schemars(range(max = 7))]
    pub tcp_recovery: Option<u32>,
    /// Whether TCP begins with what earlier connections of this repetition learned about the other host: its slow-start threshold and round trip (`net.ipv4.tcp_no_metrics_save`, `net.ipv4.tcp_no_ssthresh_metrics_save`).
    #[schemars(extend("default_help" = "as the profile has it, else false"))]
    pub tcp_metrics: Option<bool>,
    /// After how long without a packet from the other end QUIC ends a connection (RFC 9000, section 10.1); 0 is never.
    #[schemars(range(min = 0, max = 86_400_000_000_000_u64), extend("set_by_programs" = "the idle timeout of its connections", "default_help" = "0"))]
    pub quic_idle_timeout_ns: Option<u64>,
    /// After how much idle time QUIC sends a packet, so that the idle timeout of either end does not pass; 0 is never.
    #[schemars(range(min = 0, max = 86_400_000_000_000_u64), extend("set_by_programs" = "when its connections send keep-alives", "default_help" = "0"))]
    pub quic_keep_alive_ns: Option<u64>,
    /// Whether QUIC searches for the largest packet that passes (RFC 8899); otherwise its packets keep 1200 bytes.
    #[schemars(extend("set_by_programs" = "the size of its packets", "default_help" = "true"))]
    pub quic_mtu_discovery: Option<bool>,
    /// How many later packets have to arrive before QUIC takes one for lost (RFC 9002, section 6.1.1).
    #[schemars(range(min = 3, max = 1_000_000), extend("set_by_programs" = "when a packet is lost", "unit" = "packets", "default_help" = "3"))]
    pub quic_packet_threshold: Option<u32>,
    /// After how many round trips QUIC takes a packet for lost of which a later one has arrived (RFC 9002, section 6.1.2).
    #[schemars(range(min = 1, max = 100), extend("set_by_programs" = "when a packet is lost", "default_help" = "1.125"))]
    pub quic_time_threshold: Option<f64>,
    /// How many bytes of a stream a QUIC receiver takes before its program has read any (RFC 9000, section 4.1).
    #[schemars(range(min = MIN_BUFFER, max = MAX_BUFFER), extend("set_by_programs" = "the flow control of its connections", "default_help" = "16MiB"))]
    pub quic_stream_window_bytes: Option<u32>,
    /// How many bytes of all streams of a connection together a QUIC receiver takes before its program has read any (RFC 9000, section 4.1).
    #[schemars(range(min = MIN_BUFFER, max = MAX_BUFFER), extend("set_by_programs" = "the flow control of its connections", "default_help" = "64MiB"))]
    pub quic_connection_window_bytes: Option<u32>,
    /// How many bytes of a stream an end of HTTP/2 takes before its program has read any (RFC 9113, section 6.9).
    #[schemars(range(min = MIN_BUFFER, max = MAX_BUFFER), extend("set_by_programs" = "the flow control of its connections", "default_help" = "6MiB"))]
    pub http2_stream_window_bytes: Option<u32>,
    /// How many bytes of all streams of a connection together an end of HTTP/2 takes before its program has read any (RFC 9113, section 6.9).
    #[schemars(range(min = MIN_CONNECTION_WINDOW, max = MAX_BUFFER), extend("set_by_programs" = "the flow control of its connections", "default_help" = "15MiB"))]
    pub http2_connection_window_bytes: Option<u32>,
    /// The codepoint of differentiated services of all packets of TCP and UDP (`IP_TOS`); packets of QUIC have none.
    #[schemars(extend("set_by_programs" = "the codepoint of its packets", "default_help" = "cs0"))]
    pub dscp: Option<Dscp>,
    /// How often the state of each TCP socket is recorded, such as its congestion window (`TCP_INFO`); without it once, at the end.
    #[schemars(range(min = 100_000, max = 60_000_000_000_u64), extend("set_by_programs" = "its sockets, which Crosswind does not see", "default_help" = "never"))]
    pub sample_tcp_ns: Option<u64>,
    /// The clock of both hosts and of the path.
    pub clock: HostClock,
    /// Where the emulator runs in virtual time.
    #[schemars(extend("default_help" = "kernel if it has the path, else process"))]
    pub emulator: Option<EmulatorPlace>,
    /// Where within the steps of the kernel's timers (64 ms for one of a second) a cell begins in virtual time: with fixed at the same
    /// place in every repetition, with seed anywhere, as on a machine.
    #[schemars(extend("default_help" = "fixed"))]
    pub tick_phase: TickPhase,
    /// Seed for the hosts' random numbers in virtual time, as for QUIC's connection ids and skipped packet numbers: the same in every
    /// repetition.
    #[schemars(range(max = 9_007_199_254_740_992_u64), extend("default_help" = "each repetition's own"))]
    pub random_seed: Option<u64>,
}
}

impl HostConfig {
    /// The settings in `object`, checked.
    pub fn from_object(object: &Map<String, Value>) -> std::result::Result<Self, SettingError> {
        let host: Self = crosswind_settings::read(object)?;
        if host.tcp_keep_alive_ns.is_some_and(|ns| ns % 1_000_000_000 != 0) {
            let problem = "is no whole number of seconds, which Linux counts in";
            return Err(SettingError::new("tcp_keep_alive_ns", problem, "as 10s"));
        }
        for (key, sizes) in [("tcp_rmem", &host.tcp_rmem), ("tcp_wmem", &host.tcp_wmem)] {
            if let Some(text) = sizes.as_ref().filter(|text| !are_sizes(text)) {
                let problem = format!("\"{text}\" is not three sizes");
                let hint = "the least, the first and the greatest, in bytes, as in \"4096 131072 6291456\"";
                return Err(SettingError::new(key, problem, hint));
            }
        }
        Ok(host)
    }

    /// The same for hosts of programs, which set up their sockets themselves: socket settings become the kernel's
    /// defaults. An error names settings only a program can make.
    pub fn for_programs(&self, given: &Map<String, Value>) -> std::result::Result<Self, SettingError> {
        for Key { name, set_by_programs, .. } in keys().filter(|key| given.contains_key(&key.name)) {
            if let Some(what) = set_by_programs {
                let problem = format!("is set, and a program sets {what} itself");
                return Err(SettingError::new(name, problem, "leave it out; many programs have an option for it"));
            }
        }
        // Linux doubles a socket's requested size for its own bookkeeping.
        let sizes = |asked: u32| format!("{MIN_BUFFER} {0} {0}", u64::from(asked) * 2);
        let mut host = Self { nodelay: None, ..self.clone() };
        for (buffer, key, memory) in [
            (host.receive_buffer_bytes, "tcp_rmem", &mut host.tcp_rmem),
            (host.send_buffer_bytes, "tcp_wmem", &mut host.tcp_wmem),
        ] {
            let Some(asked) = buffer else { continue };
            let wanted = sizes(asked.min(i32::MAX as u32 / 2));
            if memory.as_ref().is_some_and(|given| *given != wanted) {
                let problem = "is set, and so is the buffer of sockets, which sets it too";
                return Err(SettingError::new(key, problem, "leave one of the two out"));
            }
            *memory = Some(wanted);
        }
        Ok(host)
    }

    /// Whether only sockets and connections are set: possible on unchanged machines.
    pub fn is_of_sockets(&self) -> bool {
        let of_machines = |host: &Self| {
            let mut written = serde_json::to_value(host).unwrap_or_default();
            if let Some(values) = written.as_object_mut() {
                values.retain(|name, _| !keys().any(|key| key.on_sockets && key.name == *name));
            }
            written
        };
        of_machines(self) == of_machines(&Self::default())
    }

    /// The keys set on sockets and connections, by their study names.
    pub fn keys_of_sockets() -> impl Iterator<Item = &'static str> {
        keys().filter(|key| key.on_sockets).map(|key| key.study.as_str())
    }
}

fn keys() -> impl Iterator<Item = &'static Key> {
    crosswind_settings::describe::<HostConfig>().keys.iter()
}

/// Whether a text is three sizes, none less than the one before, as the kernel takes them.
fn are_sizes(text: &str) -> bool {
    let sizes: Option<Vec<i32>> = text.split(' ').map(|word| word.parse().ok()).collect();
    sizes.is_some_and(|sizes| sizes.len() == 3 && sizes[0] >= 1 && sizes.is_sorted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(settings: &Value) -> String {
        HostConfig::from_object(settings.as_object().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn impossible_settings_are_refused_by_key() {
        for (settings, message) in [
            (json!({"congestion": "reno"}), "congestion is not a known key"),
            (json!({"profile": "windows"}), "profile windows is not one of linux, freebsd-8"),
            (json!({"send_buffer_bytes": 4095}), "send_buffer_bytes 4095 is not between 4096 and 1073741824"),
            (
                json!({"receive_buffer_bytes": 2_147_483_648_u64}),
                "receive_buffer_bytes 2147483648 is not between 4096 and 1073741824",
            ),
            (json!({"initial_window": 0}), "initial_window 0 is not between 1 and 1000"),
            (json!({"tcp_retries2": 0}), "tcp_retries2 0 is not between 1 and 255"),
            (
                json!({"tcp_keep_alive_ns": 1_500_000_000_u64}),
                "tcp_keep_alive_ns is no whole number of seconds, which Linux counts in",
            ),
            (json!({"quic_packet_threshold": 2}), "quic_packet_threshold 2 is not between 3 and 1000000"),
            (json!({"min_rto_ns": 5}), "min_rto_ns 5 is not between 1000000 and 120000000000"),
        ] {
            assert_eq!(refused(&settings), message);
        }
    }
}
