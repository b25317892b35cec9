//! What settings derive: serde's and schemars' where there is text, else nothing.

#[cfg(not(feature = "settings"))]
pub use crosswind_inert::{Deserialize, JsonSchema, Serialize};
#[cfg(feature = "settings")]
pub use schemars::JsonSchema;
#[cfg(feature = "settings")]
pub use serde::{Deserialize, Serialize};
