//! What settings derive: serde's where stages are handed over, schemars' where there is text, else nothing.

#[cfg(not(feature = "settings"))]
pub use crosswind_inert::JsonSchema;
#[cfg(not(feature = "serde"))]
pub use crosswind_inert::{Deserialize, Serialize};
#[cfg(feature = "settings")]
pub use schemars::JsonSchema;
#[cfg(feature = "serde")]
pub use serde::{Deserialize, Serialize};
