//! Profiles: bundles of host settings with a name.

use super::HostConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A bundle of host settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostProfile {
    /// Linux as it is.
    #[default]
    Linux,
    /// FreeBSD 8.2.
    #[serde(rename = "freebsd-8")]
    FreeBsd8,
}

/// A profile, as the catalogue lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostProfileDescription {
    /// As a cell names it.
    pub name: &'static str,
    /// What it is.
    pub help: &'static str,
    /// The values that it gives, by key; all others are the kernel's.
    pub values: Map<String, Value>,
}

impl HostProfile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Linux, Self::FreeBsd8];

    /// Its name and help, and the values that it gives.
    pub fn describe(self) -> HostProfileDescription {
        let (name, help) = match self {
            Self::Linux => ("linux", "The kernel's defaults, with congestion control cubic."),
            Self::FreeBsd8 => (
                "freebsd-8",
                "FreeBSD 8.2, as closely as Linux can match it: reno, initial window 3, 64 kB window, minimum RTO 230 ms.",
            ),
        };
        HostProfileDescription { name, help, values: self.values().written() }
    }

    /// What Linux does where neither a profile nor a key says anything, as far as forecasts and models need to know it.
    pub fn kernel() -> Map<String, Value> {
        let defaults = HostConfig {
            congestion_control: Some("cubic".into()),
            sack: Some(true),
            timestamps: Some(true),
            window_scaling: Some(true),
            tail_loss_probe: Some(true),
            initial_window: Some(10), // RFC 6928
            min_rto_ns: Some(200_000_000),
            ..HostConfig::default()
        };
        defaults.written()
    }

    /// The values that it gives; nothing where it leaves the kernel's.
    pub(super) fn values(self) -> HostConfig {
        match self {
            Self::Linux => {
                HostConfig { congestion_control: Some("cubic".into()), nodelay: Some(true), ..HostConfig::default() }
            }
            // FreeBSD 8.2 by its sources: NewReno, initial window of RFC 3390, 64 kB socket buffers, SACK, no tail loss probe.
            // A window without scaling is 65535 bytes at most, whatever the kernel makes of its buffers (RFC 9293);
            // its timeout is max(RTT estimate, 30 ms) + 200 ms of slop, which Linux (RTT + minimum) meets with 230 ms on a short path.
            Self::FreeBsd8 => HostConfig {
                congestion_control: Some("reno".into()),
                nodelay: Some(true),
                sack: Some(true),
                timestamps: Some(true),
                tail_loss_probe: Some(false),
                initial_window: Some(3),
                window_scaling: Some(false),
                min_rto_ns: Some(230_000_000),
                ..HostConfig::default()
            },
        }
    }
}

impl HostConfig {
    /// The values that are set, by key.
    fn written(&self) -> Map<String, Value> {
        let values = serde_json::to_value(self).unwrap_or_default();
        let mut values = values.as_object().cloned().unwrap_or_default();
        values.remove("profile");
        values.remove("clock");
        values
    }
}
