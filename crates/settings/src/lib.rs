//! A cell's settings: every key with its type, unit, default, range and help.
//!
//! A group of settings is a struct that derives `Deserialize` and `JsonSchema`. The struct is the only place for a key:
//! its documentation is the help, its attributes are the range, and [`describe`] turns both into [`Key`]s, for the
//! catalogue, the command line and the documentation. [`read`] makes the struct from JSON and checks every value
//! against its key, so all settings are refused in the same words.
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
//! Attributes unknown to a schema are in `#[schemars(extend("..." = ...))]` on a field, or on the whole struct if it is
//! the same for all its keys:
//! - `"unit"`: the unit, if not in the name's ending (`_ns`, `_bytes`, `_bps`, `_per_s`);
//! - `"study"`: the key's name in a study, if not the name without that ending;
//! - `"kind"`: `"transport"`, `"file"`, `"queue"` or `"peer"`, types unknown to JSON;
//! - `"default_help"`: the default, if it depends on something; on a struct, for its keys without a default;
//! - `"varies"`: `false` if the key cannot be a factor of a study;
//! - `"only_with"`: `{"key": "mode", "value": "open"}` if the key has an effect only while another one has that value,
//!   with `["open", "closed"]`, one of these, or, with `null`, while the other one is set;
//! - `"on_sockets"`: `true` if the key is set on sockets and connections one by one, without a namespace;
//! - `"set_by_programs"`: the same if third-party programs set it themselves: its name.

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
