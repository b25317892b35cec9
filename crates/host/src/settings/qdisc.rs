//! Queueing disciplines of a host's device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queueing discipline with the kernel's default parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is what tc(8) says of its name
pub enum Qdisc {
    PfifoFast,
    Pfifo,
    Bfifo,
    Fq,
    Codel,
    FqCodel,
    Cake,
    Pie,
}

impl Qdisc {
    /// As the kernel names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PfifoFast => "pfifo_fast",
            Self::Pfifo => "pfifo",
            Self::Bfifo => "bfifo",
            Self::Fq => "fq",
            Self::Codel => "codel",
            Self::FqCodel => "fq_codel",
            Self::Cake => "cake",
            Self::Pie => "pie",
        }
    }
}
