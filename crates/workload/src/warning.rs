//! Notes for readers of a valid result.

use crate::programs::kept_output::{FIRST_BYTES, LAST_BYTES};
use schemars::JsonSchema;
use serde::Serialize;

/// A warning as a result has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What kind of warning it is.
    pub name: &'static str,
    /// What a reader should know.
    pub text: String,
    /// What one may do about it.
    pub hint: Option<&'static str>,
}

const fn warning(name: &'static str, text: String, hint: Option<&'static str>) -> Warning {
    Warning { name, text, hint }
}

#[expect(missing_docs, reason = "the text of each says what its arguments are")]
impl Warning {
    pub fn socket_full(host: &'static str, datagrams: u64) -> Self {
        let text = format!(
            "the {host}'s socket was full for {datagrams} datagrams that the path delivered: they count as lost, but not by the path"
        );
        let hint = "a larger receive buffer (host.receive_buffer), or fewer messages at a time";
        warning("socket_full", text, Some(hint))
    }

    /// Background traffic fills a hop's link or more, or there is no link. `side`: the direction, as `forward`.
    pub fn background(side: &str, hop: &str, rate_bps: f64, link_bps: Option<u64>) -> Self {
        let way = from_to(side);
        let of_hop = if hop.is_empty() { String::new() } else { format!(" of hop {hop}") };
        let mbit = |bps: f64| format!("{:.6} Mbit/s", bps / 1e6).replace(".000000", "");
        let (name, what, hint) = match link_bps {
            Some(link) => (
                Self::BACKGROUND_FILLS_LINK,
                format!(", and the link carries {}: its queue is always full", mbit(link as f64)),
                "less of it (background_rate), unless an overloaded link is what you study",
            ),
            None => (
                "background_meets_no_link",
                ", and there is no link with a rate: it delays nothing".to_owned(),
                "give the link a rate (rate), or leave the background traffic out",
            ),
        };
        warning(name, format!("background traffic{of_hop} from {way} is {}{what}", mbit(rate_bps)), Some(hint))
    }

    /// The name for background traffic that alone fills a link.
    pub const BACKGROUND_FILLS_LINK: &str = "background_fills_link";

    /// Packets larger than `mtu_bytes` vanish. `side`: the direction, as `forward`. `datagrams`: whether messages go
    /// over UDP. `flow`: the sending flow; none for the workload.
    pub fn black_hole(side: &str, mtu_bytes: u32, datagrams: bool, flow: Option<&String>) -> Self {
        let way = from_to(side);
        let of_flow = flow.map_or_else(String::new, |name| format!(" of the flow {name}"));
        let (what, hint) = if datagrams {
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
        let text = format!("packets over {mtu_bytes} bytes from {way} vanish without a word of ICMP: {what}");
        warning("black_hole", text, Some(hint))
    }

    /// Changes of netem's settings that reached the kernel late: how many, and the maximum delay.
    pub fn changes_late(late: usize, all: usize, most_ns: u64) -> Self {
        let text = format!(
            "the kernel had {late} of {all} changes of netem's settings late, by up to {:.1} ms: until then the path was the one before",
            most_ns as f64 / 1e6
        );
        let hint = "run it in virtual time, with fewer jobs (--jobs 1), or with path.backend tun";
        warning("changes_late", text, Some(hint))
    }

    pub fn capture_incomplete(packets: u64) -> Self {
        let text = format!("{packets} packets are missing from the captures: they came faster than they were written");
        warning("capture_incomplete", text, Some("a lower rate, or virtual time, in which no packet is missing"))
    }

    pub fn connections_incomplete(kept: u64) -> Self {
        let text = format!("the breakdown of time covers only the first {kept} packets");
        warning("connections_incomplete", text, Some("a shorter run"))
    }

    pub fn frames_incomplete(packets: u64) -> Self {
        let text = format!(
            "{packets} packets of programs could not be kept until their keys were known: what they waited for may be unknown"
        );
        warning("frames_incomplete", text, Some("a shorter run"))
    }

    pub fn forwarding_limit(held_share: f64, packets_per_s: f64) -> Self {
        let text = format!(
            "the hosts sent faster than this machine forwards: for {:.0} % of the time packets waited in their devices, which \
             the path does not count; {packets_per_s:.0} packets/s is the machine's limit, not the path's",
            held_share * 100.0
        );
        warning("forwarding_limit", text, Some("give the path a rate, or run it in virtual time"))
    }

    pub fn profile_incomplete(missing_stacks: u64) -> Self {
        let text = format!(
            "the profile is of the first part of the run: its memory was full, and {missing_stacks} stacks are missing"
        );
        warning("profile_incomplete", text, Some("fewer messages"))
    }

    pub fn profile_stripped() -> Self {
        let text = "crosswind-cell was stripped of its debug information: the profile cannot tell masking";
        warning("profile_stripped", text.to_owned(), Some("the wheel's own crosswind-cell has it"))
    }

    pub fn profile_small(stacks: usize) -> Self {
        warning("profile_small", format!("the profile rests on only {stacks} stacks"), Some("more messages"))
    }

    pub(crate) fn sessions_not_resumed(full: u64, asked: u64) -> Self {
        let text = format!("{full} of {asked} connections were set up in full: the server resumed no session");
        warning("sessions_not_resumed", text, None)
    }

    pub(crate) fn addresses_translated() -> Self {
        let text = "the server saw the client's connections come from other ports: something on the way translates addresses, so that \
                    nothing is known of single exchanges at the server";
        warning("addresses_translated", text.to_owned(), None)
    }

    pub(crate) fn peers_unwatched() -> Self {
        let text = "how long the peers waited for a processor was not measured: it counts for no budget";
        warning("peers_unwatched", text.to_owned(), None)
    }

    pub(crate) fn client_outlived(seconds: u64) -> Self {
        let text = format!("the client did not end within {seconds} s after it had finished, and was killed");
        warning("client_outlived", text, None)
    }

    pub(crate) fn host_names_missing(reason: &str) -> Self {
        let text = format!("programs do not find the hosts by the names server and client: {reason}");
        warning("host_names_missing", text, Some("use {address} for the server's address"))
    }

    /// Both hosts share directories with the machine, though each should have its own.
    pub(crate) fn host_files_shared(directories: &str) -> Self {
        let text = format!("both hosts share directories of the machine: {directories}");
        warning("host_files_shared", text, Some("two instances of a program may meet there"))
    }

    /// No exchange succeeded in a flow beside the workload.
    pub fn flow_failed(flow: &str, error: &str) -> Self {
        warning("flow_failed", format!("the flow {flow} failed: {error}"), None)
    }

    /// A cell's flows did not all overlap in time: the last to begin, and one that had ended before, none for the
    /// workload.
    pub fn flows_apart(last: &str, ended: Option<&str>) -> Self {
        let ended = ended.map_or_else(|| "the workload".to_owned(), |name| format!("the flow {name}"));
        let text = format!("{ended} ends before the flow {last} begins: nothing is said of what they share");
        warning("flows_apart", text, Some("let them run at one time: `start`, `stop`, or a longer workload"))
    }

    /// How a user's server ended before its client, in words.
    pub(crate) const fn server_ended(how: String) -> Self {
        warning("server_ended", how, None)
    }

    /// For a file with missing bytes.
    pub(crate) fn output_shortened(end: &str, file: &str, left_out_bytes: u64) -> Option<Self> {
        let text = || {
            format!(
                "{file} has the first {} MiB and the last {} MiB of what the {end} wrote: {left_out_bytes} bytes between them are \
                 left out",
                FIRST_BYTES >> 20,
                LAST_BYTES >> 20
            )
        };
        (left_out_bytes > 0).then(|| warning("output_shortened", text(), None))
    }

    pub(crate) fn output_unreadable(end: &str, file: &str, error: &std::io::Error) -> Self {
        warning("output_unreadable", format!("{file} is not what the {end} wrote: {error}"), None)
    }

    /// A program's leftovers in `{output}` that do not come back: the first names, and the number of others.
    pub(crate) fn files_left(names: &str, more: usize) -> Self {
        let others = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!("of {{output}} only files and directories come back, which these are not: {names}{others}");
        warning("files_left", text, None)
    }

    pub(crate) const fn directory_unreadable(error: String) -> Self {
        warning("directory_unreadable", error, None)
    }

    /// A peer's own warning.
    pub(crate) const fn peer(message: String) -> Self {
        warning("peer", message, None)
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
        assert_eq!(Warning::output_shortened("client", "client.out", 0), None);
        assert_eq!(
            Warning::output_shortened("client", "client.out", 7).map(|warning| warning.text).as_deref(),
            Some(
                "client.out has the first 16 MiB and the last 16 MiB of what the client wrote: 7 bytes between them are left out"
            )
        );
    }
}
