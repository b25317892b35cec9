//! Queueing disciplines of a host's device.

use crosswind_units::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
/// A queueing discipline with the kernel's default parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is what tc(8) says of its name
pub enum Qdisc {
    PfifoFast = "pfifo_fast",
    Pfifo = "pfifo",
    Bfifo = "bfifo",
    Fq = "fq",
    Codel = "codel",
    FqCodel = "fq_codel",
    Cake = "cake",
    Pie = "pie",
}
}
