//! Sets a host's settings in the kernel, in the host's namespace, and reads them back.

use super::{HostConfig, MtuProbing};
use crate::error::{HostError, Result};
use crate::guest::in_virtual_time;
use crate::netlink::Netlink;
use crate::sysctl;
use netlink_packet_route::route::RouteMetric;
use std::collections::BTreeMap;
use std::net::IpAddr;

impl HostConfig {
    /// Whether the running kernel supports these settings.
    pub fn check_kernel(&self) -> Result<()> {
        let Some(name) = &self.congestion_control else { return Ok(()) };
        let available = sysctl::get("net.ipv4.tcp_available_congestion_control")?;
        if available.split(' ').any(|known| known == name) {
            return Ok(());
        }
        Err(HostError::unsupported(format!("cannot use congestion control {name}"), "this kernel does not offer it")
            .hint(format!("this kernel offers: {available}; others may come with modprobe tcp_{name}")))
    }

    /// Sets the namespace's sysctls. Call inside the namespace, before any device is made.
    pub(crate) fn apply_sysctls(&self) -> Result<()> {
        self.check_kernel()?;
        self.apply_tcp_metrics()?;
        for name in ["accept_ra", "accept_dad", "autoconf", "router_solicitations"] {
            sysctl::set(&format!("net.ipv6.conf.default.{name}"), "0")?;
        }
        // No link-local address: it would announce itself on the path.
        sysctl::set("net.ipv6.conf.default.addr_gen_mode", "1")?;
        let flags = [
            ("tcp_sack", self.sack),
            ("tcp_timestamps", self.timestamps),
            ("tcp_window_scaling", self.window_scaling),
            ("tcp_slow_start_after_idle", self.slow_start_after_idle),
            ("tcp_ecn", self.ecn),
        ];
        for (name, value) in flags {
            if let Some(on) = value {
                sysctl::set(&format!("net.ipv4.{name}"), if on { "1" } else { "0" })?;
            }
        }
        let numbers = [
            ("tcp_retries2", self.tcp_retries2),
            ("tcp_recovery", self.tcp_recovery),
            ("tcp_mtu_probing", self.tcp_mtu_probing.map(MtuProbing::number)),
        ];
        for (name, value) in numbers {
            if let Some(number) = value {
                sysctl::set(&format!("net.ipv4.{name}"), &number.to_string())?;
            }
        }
        if let Some(on) = self.tail_loss_probe {
            sysctl::set("net.ipv4.tcp_early_retrans", if on { "3" } else { "0" })?;
        }
        for (name, sizes) in [("net.ipv4.tcp_rmem", &self.tcp_rmem), ("net.ipv4.tcp_wmem", &self.tcp_wmem)] {
            if let Some(sizes) = sizes {
                sysctl::set(name, sizes)?;
            }
        }
        Ok(())
    }

    /// Linux keeps a threshold only if both are 0, and by default the second is 1.
    fn apply_tcp_metrics(&self) -> Result<()> {
        let keeps = self.tcp_metrics == Some(true);
        sysctl::set("net.ipv4.tcp_no_metrics_save", if keeps { "0" } else { "1" })?;
        if keeps {
            sysctl::set("net.ipv4.tcp_no_ssthresh_metrics_save", "0")?;
        }
        Ok(())
    }

    /// In virtual time, with a kernel of this cell alone, raises the bounds of socket buffers for these settings. Call
    /// in the kernel's first namespace: others can only read them.
    pub(crate) fn raise_buffer_bounds(&self) -> Result<()> {
        let bounds = [("net.core.rmem_max", self.receive_buffer_bytes), ("net.core.wmem_max", self.send_buffer_bytes)];
        for (name, asked) in bounds {
            let Some(asked) = asked.filter(|_| in_virtual_time()) else { continue };
            if sysctl::get(name)?.parse::<u32>().is_ok_and(|bound| bound < asked) {
                sysctl::set(name, &asked.to_string())?;
            }
        }
        Ok(())
    }

    /// The metrics of the route to the other host.
    pub(crate) fn route_metrics(&self) -> Vec<RouteMetric> {
        let mut metrics = Vec::new();
        if let Some(name) = &self.congestion_control {
            // Set by the route and not by the sysctl: a namespace may only set that to controls the initial one leaves
            // unrestricted.
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

    /// Checks the kernel's route metrics, and returns them for the record. Call inside the namespace.
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

/// Settings with an effect on TCP and UDP. They are recorded with every cell, whether or not the cell set them.
const RECORDED: [&str; 25] = [
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.rps_default_mask",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_rto_min_us",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

/// The recorded settings in the calling thread's namespace; settings absent from this kernel are left out.
pub(crate) fn recorded_sysctls() -> BTreeMap<String, String> {
    RECORDED.iter().filter_map(|name| Some(((*name).to_owned(), sysctl::get(name).ok()?))).collect()
}
