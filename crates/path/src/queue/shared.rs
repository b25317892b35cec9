//! Keys shared by disciplines, each with its own default.

use super::backlog::MAX_TIME_NS;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use alloc::format;
use crosswind_settings::SettingError;
use crosswind_units::Duration;

/// The shortest time between two updates of a probability: 100 us.
const MIN_UPDATE_NS: u64 = 100_000;

/// When a queue begins to drop or mark packets, and whether it marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Signals {
    /// Whether the queue marks packets whose senders take marks (ECN), where it would drop others.
    #[serde(rename = "queue_marks", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "true",
        "only_with" = {"key": "discipline", "value": ["red", "codel", "fq_codel", "pie"]}
    ))]
    pub marking: Option<bool>,
    /// How long packets may wait before the queue begins to drop or mark.
    #[serde(rename = "queue_target_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_TIME_NS), extend(
        "default_help" = "5 ms; with pie and dualpi2 15 ms, with cake a twentieth of the interval",
        "only_with" = {"key": "discipline", "value": ["codel", "fq_codel", "pie", "dualpi2", "cake"]}
    ))]
    pub target: Option<Duration>,
    /// How long packets have to wait longer than the target before the first is dropped or marked.
    #[serde(rename = "queue_interval_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_TIME_NS), extend(
        "default_help" = "100 ms",
        "only_with" = {"key": "discipline", "value": ["codel", "fq_codel", "cake"]}
    ))]
    pub interval: Option<Duration>,
}

/// How a controller computes the probability of a drop or a mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Controller {
    /// How often the probability of a drop or a mark is computed.
    #[serde(rename = "queue_update_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_UPDATE_NS, max = MAX_TIME_NS), extend(
        "default_help" = "15 ms; with dualpi2 16 ms",
        "only_with" = {"key": "discipline", "value": ["pie", "dualpi2"]}
    ))]
    pub update: Option<Duration>,
    /// How much the probability grows at each update, for each second of delay beyond the target.
    #[serde(rename = "queue_alpha", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend(
        "default_help" = "0.125; with dualpi2 0.16",
        "only_with" = {"key": "discipline", "value": ["pie", "dualpi2"]}
    ))]
    pub alpha: Option<f64>,
    /// How much the probability grows at each update, for each second by which the delay has grown.
    #[serde(rename = "queue_beta", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend(
        "default_help" = "1.25; with dualpi2 3.2",
        "only_with" = {"key": "discipline", "value": ["pie", "dualpi2"]}
    ))]
    pub beta: Option<f64>,
}

impl Signals {
    /// Fills in missing times from `defaults`, and refuses times absent there.
    pub fn complete_times(&mut self, defaults: &Self) -> Result<(), SettingError> {
        fill(&mut self.interval, defaults.interval, "queue_interval_ns", "codel, fq_codel or cake")?;
        fill(&mut self.target, defaults.target, "queue_target_ns", "codel, fq_codel, pie, dualpi2 or cake")
    }
}

impl Controller {
    /// Fills in missing keys from `defaults`, and refuses keys absent there.
    pub fn complete(&mut self, defaults: &Self) -> Result<(), SettingError> {
        fill(&mut self.update, defaults.update, "queue_update_ns", "pie or dualpi2")?;
        fill(&mut self.alpha, defaults.alpha, "queue_alpha", "pie or dualpi2")?;
        fill(&mut self.beta, defaults.beta, "queue_beta", "pie or dualpi2")
    }
}

/// Fills in a parameter's default; refuses one the discipline does not have.
pub fn fill<T>(parameter: &mut Option<T>, default: Option<T>, key: &str, has: &str) -> Result<(), SettingError> {
    if parameter.is_some() && default.is_none() {
        let problem = "is set but the discipline does not have it";
        return Err(SettingError::new(key, problem, format!("leave it out, or choose {has}")));
    }
    if parameter.is_none() {
        *parameter = default;
    }
    Ok(())
}
