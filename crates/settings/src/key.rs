//! A setting's key.

use crate::error::ENDINGS;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// One key, as `crosswind-cell --describe` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(clippy::struct_excessive_bools)] // each says something else of a key
pub struct Key {
    /// Its name in a cell.
    pub name: String,
    /// Its name in a study and on the command line.
    pub study: String,
    /// Its type of value.
    #[serde(rename = "type")]
    pub key_type: KeyType,
    /// The unit of its value, if it has one.
    pub unit: Option<Unit>,
    /// The value where none is given; null where there is none, or where it depends on something.
    pub default: Value,
    /// The default's dependence.
    pub default_help: Option<String>,
    /// The minimum.
    pub minimum: Option<Number>,
    /// The maximum.
    pub maximum: Option<Number>,
    /// The accepted values, if a list.
    pub choices: Option<Vec<String>>,
    /// Whether it has to be given.
    pub required: bool,
    /// Whether it may be a factor of a study.
    pub varies: bool,
    /// The other key it needs for an effect.
    pub only_with: Option<OnlyWith>,
    /// Whether it is set on sockets and connections one by one, without a namespace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub on_sockets: bool,
    /// The thing third-party programs set themselves, if it is one.
    #[serde(skip)]
    pub set_by_programs: Option<String>,
    /// One sentence.
    pub help: String,
    /// Whether null may stand for "not given".
    #[serde(skip)]
    pub nullable: bool,
}

/// The condition on another key for a key to have an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnlyWith {
    /// The other key, of the same group.
    pub key: String,
    /// The required value, or a list of possible ones; null for any value.
    pub value: Value,
}

/// A key's type of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyType {
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A text.
    String,
    /// One of a few words.
    Choice,
    /// The name of a transport.
    Transport,
    /// The path of a file.
    File,
    /// The limit of a queue: `{"packets": 100}` or `{"bytes": 64000}`.
    Queue,
    /// A program and its arguments.
    Arguments,
    /// Numbers, each within the range: `[1, 2.5, 4]`, or those in a text file: `{"file": "..."}`.
    Series,
    /// A program in place of a client or server: `{"name": "...", "command": [...], "ready": ...}`.
    Peer,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Bits a second.
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    /// How many a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// A fraction from 0 to 1.
    Probability,
    /// TCP segments.
    Segments,
    /// Packets.
    Packets,
}

/// The units of names with these endings.
const UNITS: [Unit; 4] = [Unit::Ns, Unit::Bytes, Unit::BitsPerSecond, Unit::PerSecond];

impl Unit {
    /// The unit at a name's end, as in `size_bytes`.
    pub fn of_name(name: &str) -> Option<Self> {
        split_unit(name).1
    }
}

/// `name` without its unit's ending, and that unit.
pub(crate) fn split_unit(name: &str) -> (&str, Option<Unit>) {
    ENDINGS
        .into_iter()
        .zip(UNITS)
        .find_map(|(ending, unit)| Some((name.strip_suffix(ending)?, Some(unit))))
        .unwrap_or((name, None))
}
