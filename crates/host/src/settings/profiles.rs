//! Profiles: bundles of host settings with a name.

use super::{HostConfig, HostProfile, TickPhase};
use crosswind_settings::{Group, Layered};
use serde::Serialize;
use serde_json::{Map, Value};

/// Congestion controls independent of the seed: eight seeds gave the same samples. Among the others, BBR, CDG and NV
/// draw random numbers, and LP reads the other host's timestamps, which begin at a random one.
const STEADY_CONGESTION_CONTROLS: &str =
    "reno cubic bic dctcp highspeed htcp hybla illinois scalable vegas veno westwood yeah";

/// The hosts' settings, as in the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostGroup {
    /// The help and the keys.
    #[serde(flatten)]
    pub group: &'static Group,
    /// Linux's known defaults, by key.
    pub kernel: Map<String, Value>,
    /// The profiles.
    pub profiles: Vec<HostProfileDescription>,
}

/// A profile, as the catalogue lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostProfileDescription {
    /// As a cell names it.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// Its values, by key; all others are the kernel's.
    pub values: Map<String, Value>,
}

impl HostProfile {
    /// Its name, help and values.
    pub fn describe(self) -> HostProfileDescription {
        let (name, help) = match self {
            Self::Linux => ("linux", "The kernel's defaults, with congestion control cubic."),
            Self::FreeBsd8 => (
                "freebsd-8",
                "FreeBSD 8.2, as closely as Linux can match it: reno, initial window 3, 64 kB window, minimum RTO 230 ms, no RACK, and a memory of the other host's slow-start threshold.",
            ),
        };
        HostProfileDescription { name, help, values: self.values().written() }
    }

    /// Linux's defaults without a profile or key, as far as forecasts and models need them.
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

    /// Its values; none where it leaves the kernel's.
    fn values(self) -> HostConfig {
        match self {
            Self::Linux => {
                HostConfig { congestion_control: Some("cubic".into()), nodelay: Some(true), ..HostConfig::default() }
            }
            // FreeBSD 8.2 by its sources: NewReno, initial window of RFC 3390, 64 kB socket buffers, SACK, no tail loss
            // probe. A window without scaling is 65535 bytes at most, whatever the kernel's buffers (RFC 9293); its
            // timeout is max(RTT estimate, 30 ms) + 200 ms of slop; Linux (RTT + minimum) meets that with 230 ms on a
            // short path. Its hostcache keeps a host's ssthresh for later connections, and it has no RACK.
            Self::FreeBsd8 => HostConfig {
                congestion_control: Some("reno".into()),
                nodelay: Some(true),
                sack: Some(true),
                timestamps: Some(true),
                tail_loss_probe: Some(false),
                initial_window: Some(3),
                window_scaling: Some(false),
                min_rto_ns: Some(230_000_000),
                tcp_recovery: Some(0),
                tcp_metrics: Some(true),
                ..HostConfig::default()
            },
        }
    }
}

impl HostConfig {
    /// Every key, and every profile with its values.
    pub fn describe() -> HostGroup {
        HostGroup {
            group: crosswind_settings::describe::<Self>(),
            kernel: HostProfile::kernel(),
            profiles: HostProfile::ALL.into_iter().map(HostProfile::describe).collect(),
        }
    }

    /// Whether the hosts do something else with another seed.
    pub fn is_random(&self) -> bool {
        let is_steady = |name: String| STEADY_CONGESTION_CONTROLS.split(' ').any(|steady| steady == name);
        let draws = || self.resolved().congestion_control.is_some_and(|name| !is_steady(name));
        self.tick_phase == TickPhase::Seed || (self.random_seed.is_none() && draws())
    }

    /// The same with the profile's values filled in.
    #[must_use]
    pub fn resolved(&self) -> Self {
        self.clone().over(self.profile.values())
    }

    /// The given values, by key.
    fn written(&self) -> Map<String, Value> {
        let values = serde_json::to_value(self).unwrap_or_default();
        let mut values = values.as_object().cloned().unwrap_or_default();
        values.remove("profile");
        values.remove("clock");
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_profile_gives_values_and_keys_override_them() {
        let settings = json!({"profile": "freebsd-8", "initial_window": 10});
        let host = HostConfig::from_object(settings.as_object().unwrap()).unwrap().resolved();
        assert_eq!((host.initial_window, host.min_rto_ns, host.sack), (Some(10), Some(230_000_000), Some(true)));
        assert_eq!(host.congestion_control.as_deref(), Some("reno"));
        assert_eq!(HostConfig::default().resolved().congestion_control.as_deref(), Some("cubic"));
    }
}
