//! The two ends of a path.

use crosswind_units::named;
use serde::Serialize;

named! {
/// A program's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Client = "client",
    Server = "server",
}
}
