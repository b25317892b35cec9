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

/// A thing for each end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerEnd<T> {
    pub client: T,
    pub server: T,
}

impl<T> PerEnd<T> {
    /// Makes both.
    pub fn of(mut make: impl FnMut(Role) -> T) -> Self {
        Self { client: make(Role::Client), server: make(Role::Server) }
    }

    /// One end's.
    pub const fn of_role(&self, role: Role) -> &T {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }
}
