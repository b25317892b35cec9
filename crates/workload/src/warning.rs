//! Notes for readers of a valid result.

use crate::programs::kept_output::{FIRST_BYTES, LAST_BYTES};
use schemars::JsonSchema;
use serde::Serialize;

/// One note, with its subject.
#[expect(missing_docs, reason = "the text of each says what its fields are")]
#[derive(Clone, Debug, PartialEq)]
pub enum Warning {
    SocketFull {
        host: &'static str,
        datagrams: u64,
    },
    /// Packets larger than `mtu_bytes` vanish. `side`: the direction, as `forward`. `datagrams`: whether messages go
    /// over UDP. `flow`: the sending flow; none for the workload.
    BlackHole {
        side: &'static str,
        mtu_bytes: u32,
        datagrams: bool,
        flow: Option<String>,
    },
    /// Background traffic fills a hop's link or more, or there is no link. `side`: the direction.
    Background {
        side: &'static str,
        hop: String,
        rate_bps: f64,
        link_bps: Option<u64>,
    },
    /// Changes of netem's settings that reached the kernel late: how many, and the maximum delay.
    ChangesLate {
        late: usize,
        all: usize,
        most_ns: u64,
    },
    CaptureIncomplete {
        packets: u64,
    },
    ConnectionsIncomplete {
        kept: u64,
    },
    FramesIncomplete {
        datagrams: u64,
    },
    ForwardingLimit {
        held_share: f64,
        packets_per_s: f64,
    },
    ProfileIncomplete {
        missing_stacks: u64,
    },
    ProfileStripped,
    ProfileSmall {
        stacks: usize,
    },
    SessionsNotResumed {
        full: u64,
        asked: u64,
    },
    AddressesTranslated,
    PeersUnwatched,
    ClientOutlived {
        seconds: u64,
    },
    HostNamesMissing {
        reason: String,
    },
    /// How a user's server ended before its client, in words.
    ServerEnded(String),
    OutputShortened {
        end: &'static str,
        file: String,
        left_out_bytes: u64,
    },
    OutputUnreadable {
        end: &'static str,
        file: String,
        error: String,
    },
    /// A program's leftovers in `{output}` that do not come back: the first names, and the number of others.
    FilesLeft {
        names: String,
        more: usize,
    },
    DirectoryUnreadable(String),
    /// No exchange succeeded in a flow beside the workload.
    FlowFailed {
        flow: String,
        error: String,
    },
    /// A cell's flows did not all overlap in time: the last to begin, and one that had ended before, none for the
    /// workload.
    FlowsApart {
        last: String,
        ended: Option<String>,
    },
    /// A peer's own warning.
    Peer(String),
}

/// A warning as a result has it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WarningReport {
    /// What kind of warning it is.
    pub name: &'static str,
    /// What a reader should know.
    pub text: String,
    /// What one may do about it.
    pub hint: Option<&'static str>,
}

impl Warning {
    /// For a file with missing bytes.
    pub(crate) fn of_output(end: &'static str, file: String, left_out_bytes: u64) -> Option<Self> {
        (left_out_bytes > 0).then_some(Self::OutputShortened { end, file, left_out_bytes })
    }

    /// Its name, text and hint.
    #[expect(clippy::too_many_lines, reason = "a row for each")]
    pub fn report(&self) -> WarningReport {
        let (name, text, hint) = match self {
            Self::SocketFull { host, datagrams } => (
                "socket_full",
                format!(
                    "the {host}'s socket was full for {datagrams} datagrams that the path delivered: they count as lost, but not by the path"
                ),
                Some("a larger receive buffer (host.receive_buffer), or fewer messages at a time"),
            ),
            Self::Background { side, hop, rate_bps, link_bps } => {
                let way = from_to(side);
                let of_hop = if hop.is_empty() { String::new() } else { format!(" of hop {hop}") };
                let mbit = |bps: f64| format!("{:.6} Mbit/s", bps / 1e6).replace(".000000", "");
                let (name, what, hint) = match link_bps {
                    Some(link) => (
                        "background_fills_link",
                        format!(", and the link carries {}: its queue is always full", mbit(*link as f64)),
                        "less of it (background_rate), unless an overloaded link is what you study",
                    ),
                    None => (
                        "background_meets_no_link",
                        ", and there is no link with a rate: it delays nothing".to_owned(),
                        "give the link a rate (rate), or leave the background traffic out",
                    ),
                };
                (name, format!("background traffic{of_hop} from {way} is {}{what}", mbit(*rate_bps)), Some(hint))
            }
            Self::BlackHole { side, mtu_bytes, datagrams, flow } => {
                let way = from_to(side);
                let of_flow = flow.as_ref().map_or_else(String::new, |name| format!(" of the flow {name}"));
                let (what, hint) = if *datagrams {
                    (
                        format!("larger messages{of_flow} are lost, each of them"),
                        "smaller messages (size), or ICMP (path.mtu_black_hole = false)",
                    )
                } else {
                    (
                        format!("TCP{of_flow}, which does not probe here, sends them again until it gives up"),
                        "let TCP probe (host.tcp_mtu_probing = \"black-hole\"), let ICMP tell it (path.mtu_black_hole = false), or give the hosts this MTU \
                         (path.mtu)",
                    )
                };
                (
                    "black_hole",
                    format!("packets over {mtu_bytes} bytes from {way} vanish without a word of ICMP: {what}"),
                    Some(hint),
                )
            }
            Self::ChangesLate { late, all, most_ns } => (
                "changes_late",
                format!(
                    "the kernel had {late} of {all} changes of netem's settings late, by up to {:.1} ms: until then the path was the one before",
                    *most_ns as f64 / 1e6
                ),
                Some("run it in virtual time, with fewer jobs (--jobs 1), or with path.backend tun"),
            ),
            Self::CaptureIncomplete { packets } => (
                "capture_incomplete",
                format!("{packets} packets are missing from the captures: they came faster than they were written"),
                Some("a lower rate, or virtual time, in which no packet is missing"),
            ),
            Self::ConnectionsIncomplete { kept } => (
                "connections_incomplete",
                format!("what connections spent their time on is told of the first {kept} packets alone"),
                Some("a shorter run"),
            ),
            Self::FramesIncomplete { datagrams } => (
                "frames_incomplete",
                format!("{datagrams} datagrams of QUIC could not be kept until their keys were known: what they waited for is unknown"),
                Some("a shorter run"),
            ),
            Self::ForwardingLimit { held_share, packets_per_s } => (
                "forwarding_limit",
                format!(
                    "the hosts sent faster than this machine forwards: for {:.0} % of the time packets waited in their devices, which \
                     the path does not count; {packets_per_s:.0} packets/s is the machine's limit, not the path's",
                    held_share * 100.0
                ),
                Some("give the path a rate, or run it in virtual time"),
            ),
            Self::ProfileIncomplete { missing_stacks } => (
                "profile_incomplete",
                format!(
                    "the profile is of the first part of the run: its memory was full, and {missing_stacks} stacks are missing"
                ),
                Some("fewer messages"),
            ),
            Self::ProfileStripped => (
                "profile_stripped",
                "crosswind-cell was stripped of its debug information: the profile cannot tell masking".to_owned(),
                Some("the wheel's own crosswind-cell has it"),
            ),
            Self::ProfileSmall { stacks } => {
                ("profile_small", format!("the profile rests on only {stacks} stacks"), Some("more messages"))
            }
            Self::SessionsNotResumed { full, asked } => (
                "sessions_not_resumed",
                format!("{full} of {asked} connections were set up in full: the server resumed no session"),
                None,
            ),
            Self::AddressesTranslated => (
                "addresses_translated",
                "the server saw the client's connections come from other ports: something on the way translates addresses, so that \
                 nothing is known of single exchanges at the server"
                    .to_owned(),
                None,
            ),
            Self::PeersUnwatched => (
                "peers_unwatched",
                "how long the peers waited for a processor was not measured: it counts for no budget".to_owned(),
                None,
            ),
            Self::ClientOutlived { seconds } => (
                "client_outlived",
                format!("the client did not end within {seconds} s after it had finished, and was killed"),
                None,
            ),
            Self::HostNamesMissing { reason } => (
                "host_names_missing",
                format!("programs do not find the hosts by the names server and client: {reason}"),
                Some("use {address} for the server's address"),
            ),
            Self::FlowFailed { flow, error } => ("flow_failed", format!("the flow {flow} failed: {error}"), None),
            Self::FlowsApart { last, ended } => {
                let ended = ended.as_ref().map_or_else(|| "the workload".to_owned(), |name| format!("the flow {name}"));
                let text = format!("{ended} ends before the flow {last} begins: nothing is said of what they share");
                ("flows_apart", text, Some("let them run at one time: `start`, `stop`, or a longer workload"))
            }
            Self::ServerEnded(how) => ("server_ended", how.clone(), None),
            Self::OutputShortened { end, file, left_out_bytes } => (
                "output_shortened",
                format!(
                    "{file} has the first {} MiB and the last {} MiB of what the {end} wrote: {left_out_bytes} bytes between them are \
                     left out",
                    FIRST_BYTES >> 20,
                    LAST_BYTES >> 20
                ),
                None,
            ),
            Self::OutputUnreadable { end, file, error } => {
                ("output_unreadable", format!("{file} is not what the {end} wrote: {error}"), None)
            }
            Self::FilesLeft { names, more } => {
                let others = if *more > 0 { format!(" and {more} more") } else { String::new() };
                (
                    "files_left",
                    format!(
                        "of {{output}} only files and directories come back, which these are not: {names}{others}"
                    ),
                    None,
                )
            }
            Self::DirectoryUnreadable(error) => ("directory_unreadable", error.clone(), None),
            Self::Peer(message) => ("peer", message.clone(), None),
        };
        WarningReport { name, text, hint }
    }
}

/// A direction in words.
fn from_to(side: &str) -> &'static str {
    if side == "forward" { "client to server" } else { "server to client" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_says_how_much_is_missing_and_where() {
        assert_eq!(Warning::of_output("client", "client.out".into(), 0), None);
        assert_eq!(
            Warning::of_output("client", "client.out".into(), 7).map(|warning| warning.report().text).as_deref(),
            Some(
                "client.out has the first 16 MiB and the last 16 MiB of what the client wrote: 7 bytes between them are left out"
            )
        );
    }
}
