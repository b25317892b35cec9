//! Host settings: profiles bundle them, keys override them, the kernel applies them, and they are read back.

use crate::error::{HostError, Result};
use crate::netlink::Netlink;
use crate::sysctl;
use netlink_packet_route::route::RouteMetric;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A bundle of host settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The kernel's defaults, with congestion control cubic.
    #[default]
    Linux,
    /// FreeBSD 8.2 as far as Linux can be it.
    #[serde(rename = "freebsd-8")]
    FreeBsd8,
}

/// What a cell asks of both hosts: a profile, and keys that override it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HostConfig {
    /// Gives every value that is not set here.
    pub profile: Profile,
    /// TCP congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// `TCP_NODELAY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// Selective acknowledgements (RFC 2018).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// TCP timestamps (RFC 7323).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Window scaling (RFC 7323).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Tail loss probe (RFC 8985).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_loss_probe: Option<bool>,
    /// Slow start again after idle time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_start_after_idle: Option<bool>,
    /// `SO_SNDBUF`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u32>,
    /// Initial congestion window, segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
    /// Minimum retransmission timeout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rto_ns: Option<u64>,
}

impl HostConfig {
    /// The same with every value that the profile gives filled in.
    #[must_use]
    pub fn resolved(&self) -> Self {
        let profile = match self.profile {
            Profile::Linux => Self { congestion_control: Some("cubic".into()), nodelay: Some(true), ..Self::default() },
            // FreeBSD 8.2 by its sources: NewReno, initial window of RFC 3390, 64 kB socket buffers, SACK, no tail loss probe.
            // A window without scaling is 65535 bytes at most, whatever the kernel makes of its buffers (RFC 9293);
            // its timeout is max(RTT estimate, 30 ms) + 200 ms of slop, which Linux (RTT + minimum) meets with 230 ms on a short path.
            Profile::FreeBsd8 => Self {
                congestion_control: Some("reno".into()),
                nodelay: Some(true),
                sack: Some(true),
                timestamps: Some(true),
                tail_loss_probe: Some(false),
                initial_window: Some(3),
                window_scaling: Some(false),
                min_rto_ns: Some(230_000_000),
                ..Self::default()
            },
        };
        Self {
            profile: self.profile,
            congestion_control: self.congestion_control.clone().or(profile.congestion_control),
            nodelay: self.nodelay.or(profile.nodelay),
            sack: self.sack.or(profile.sack),
            timestamps: self.timestamps.or(profile.timestamps),
            window_scaling: self.window_scaling.or(profile.window_scaling),
            tail_loss_probe: self.tail_loss_probe.or(profile.tail_loss_probe),
            slow_start_after_idle: self.slow_start_after_idle.or(profile.slow_start_after_idle),
            send_buffer_bytes: self.send_buffer_bytes.or(profile.send_buffer_bytes),
            receive_buffer_bytes: self.receive_buffer_bytes.or(profile.receive_buffer_bytes),
            initial_window: self.initial_window.or(profile.initial_window),
            min_rto_ns: self.min_rto_ns.or(profile.min_rto_ns),
        }
    }

    /// What is impossible about the values, if anything: the key and why.
    pub fn problem(&self) -> Option<String> {
        let outside = |key: &str, value: u64, low: u64, high: u64| {
            (!(low..=high).contains(&value)).then(|| format!("host.{key} {value} is not between {low} and {high}"))
        };
        None.or_else(|| self.send_buffer_bytes.and_then(|v| outside("send_buffer_bytes", v.into(), 4096, 1 << 30)))
            .or_else(|| {
                self.receive_buffer_bytes.and_then(|v| outside("receive_buffer_bytes", v.into(), 4096, 1 << 30))
            })
            .or_else(|| self.initial_window.and_then(|v| outside("initial_window", v.into(), 1, 1000)))
            .or_else(|| self.min_rto_ns.and_then(|v| outside("min_rto_ns", v, 1_000_000, 120_000_000_000)))
    }

    /// Sets the namespace's sysctls. Call inside the namespace, before any device is made.
    pub(crate) fn apply_sysctls(&self) -> Result<()> {
        // Metrics of one connection must not leak into the next.
        sysctl::set("net.ipv4.tcp_no_metrics_save", "1")?;
        for name in ["accept_ra", "accept_dad", "autoconf", "router_solicitations"] {
            sysctl::set(&format!("net.ipv6.conf.default.{name}"), "0")?;
        }
        // No link-local address: it would announce itself on the path.
        sysctl::set("net.ipv6.conf.default.addr_gen_mode", "1")?;
        if let Some(name) = &self.congestion_control {
            let available = sysctl::get("net.ipv4.tcp_available_congestion_control")?;
            if !available.split(' ').any(|known| known == name) {
                return Err(HostError::unsupported(
                    format!("cannot use congestion control {name}"),
                    "this kernel does not offer it",
                )
                .hint(format!("this kernel offers: {available}; others may come with modprobe tcp_{name}")));
            }
        }
        let flags = [
            ("tcp_sack", self.sack),
            ("tcp_timestamps", self.timestamps),
            ("tcp_window_scaling", self.window_scaling),
            ("tcp_slow_start_after_idle", self.slow_start_after_idle),
        ];
        for (name, value) in flags {
            if let Some(on) = value {
                sysctl::set(&format!("net.ipv4.{name}"), if on { "1" } else { "0" })?;
            }
        }
        if let Some(on) = self.tail_loss_probe {
            sysctl::set("net.ipv4.tcp_early_retrans", if on { "3" } else { "0" })?;
        }
        Ok(())
    }

    /// What the route to the other host carries.
    pub(crate) fn route_metrics(&self) -> Vec<RouteMetric> {
        let mut metrics = Vec::new();
        if let Some(name) = &self.congestion_control {
            // By the route and not by the sysctl, which a namespace may only set to what is unrestricted in the initial one.
            metrics.push(RouteMetric::CcAlgo(name.clone()));
        }
        if let Some(ns) = self.min_rto_ns {
            // RTAX_LOCK on RTO_MIN, or the kernel ignores it.
            metrics.push(RouteMetric::Lock(1 << 13));
            metrics.push(RouteMetric::RtoMin((ns / 1_000_000) as u32));
        }
        if let Some(segments) = self.initial_window {
            metrics.push(RouteMetric::InitCwnd(segments));
        }
        metrics
    }

    /// Checks that the kernel has the route's metrics, and returns them for the record. Call inside the namespace.
    pub(crate) fn read_back_route(&self, netlink: &Netlink, to: IpAddr) -> Result<BTreeMap<String, String>> {
        let found = netlink.route_metrics(to)?;
        for wanted in self.route_metrics() {
            if !found.contains(&wanted) {
                return Err(HostError::unsupported(
                    format!("the route's metric {wanted:?} was set"),
                    format!("the kernel has {found:?}"),
                ));
            }
        }
        Ok(found
            .into_iter()
            .filter_map(|metric| match metric {
                RouteMetric::RtoMin(ms) => Some(("rto_min_ms".to_owned(), ms.to_string())),
                RouteMetric::InitCwnd(segments) => Some(("initial_window_segments".to_owned(), segments.to_string())),
                RouteMetric::CcAlgo(name) => Some(("congestion_control".to_owned(), name)),
                _ => None,
            })
            .collect())
    }
}

/// Settings that change what TCP and UDP do: recorded with every cell, whoever set them.
const RECORDED: [&str; 20] = [
    "net.core.rmem_default",
    "net.core.wmem_default",
    "net.core.rps_default_mask",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_rto_min_us",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// The recorded settings of the calling thread's namespace; those that this kernel lacks are left out.
pub(crate) fn recorded_sysctls() -> BTreeMap<String, String> {
    RECORDED.iter().filter_map(|name| Some(((*name).to_owned(), sysctl::get(name).ok()?))).collect()
}
