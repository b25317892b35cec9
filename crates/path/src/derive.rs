//! Derives for settings: serde's if stages are handed over, schemars' if there is text, else nothing.

#[cfg(not(feature = "settings"))]
pub use crosswind_noop_derive::JsonSchema;
#[cfg(not(feature = "serde"))]
pub use crosswind_noop_derive::{Deserialize, Serialize};
#[cfg(feature = "settings")]
pub use schemars::JsonSchema;
#[cfg(feature = "serde")]
pub use serde::{Deserialize, Serialize};
