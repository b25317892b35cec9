//! What the settings of a cell are: every key with its type, unit, default, range and help.
//!
//! A group of settings is a struct that derives `Deserialize` and `JsonSchema`. The struct is the only place where a key
//! stands: its documentation is the help, its attributes are the range, and [`describe`] turns both into [`Key`]s, for
//! the catalogue, the command line and the documentation. [`read`] makes the struct from JSON and holds every value to
//! its key, so that all settings are refused in the same words.
//!
//! ```
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Ping {
//!     /// Bytes of one message.
//!     #[serde(default = "one")]
//!     #[schemars(range(min = 1, max = 1000))]
//!     size_bytes: u64,
//! }
//! # fn one() -> u64 { 1 }
//!
//! let keys = &crosswind_settings::describe::<Ping>().keys;
//! assert_eq!((keys[0].name.as_str(), keys[0].study.as_str()), ("size_bytes", "size"));
//!
//! let settings = serde_json::json!({"size_bytes": 0});
//! let refused = crosswind_settings::read::<Ping>(settings.as_object().unwrap()).err().unwrap();
//! assert_eq!(refused.to_string(), "size_bytes 0 is not between 1 and 1000");
//! ```
//!
//! What a schema has no word for stands in `#[schemars(extend("..." = ...))]` of a field, or of the whole struct where it
//! is the same for all of its keys:
//! - `"unit"`: the unit, where the name's ending (`_ns`, `_bytes`, `_bps`, `_per_s`) does not say it;
//! - `"study"`: the key's name in a study, where it is not the name without that ending;
//! - `"kind"`: `"transport"`, `"file"`, `"queue"` or `"peer"`, types that are no JSON type;
//! - `"default_help"`: what the default is, where it depends on something; of a struct, for its keys without a default;
//! - `"varies"`: `false` where the key cannot be a factor of a study;
//! - `"only_with"`: `{"key": "mode", "value": "open"}` where the key has an effect only while another one has that value, with
//!   `["open", "closed"]`, one of these, or, with `null`, while the other one is set;
//! - `"on_sockets"`: `true` where the key is set on sockets and connections one by one, which takes no namespace;
//! - `"set_by_programs"`: the same where third-party programs set it themselves: what that is.

#![cfg_attr(not(feature = "read"), no_std)]

extern crate alloc;

#[cfg(feature = "read")]
mod describe;
mod error;
#[cfg(feature = "read")]
mod key;
#[cfg(feature = "read")]
mod layers;
#[cfg(feature = "read")]
mod read;

#[cfg(feature = "read")]
pub use describe::{Group, describe, describe_with};
#[cfg(feature = "read")]
pub use error::Range;
pub use error::{Code, SettingError, plain};
#[cfg(feature = "read")]
pub use key::{Key, KeyType, OnlyWith, Unit};
#[cfg(feature = "read")]
pub use layers::Layered;
#[cfg(feature = "read")]
pub use read::{check, deserialize, read};
