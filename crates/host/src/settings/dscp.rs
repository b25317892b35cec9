//! Differentiated services codepoints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The codepoint of packets, by its name in IANA's registry (RFC 2474, 2597, 3246, 5865, 8622).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each is the name
pub enum Dscp {
    Cs0 = 0,
    Cs1 = 8,
    Cs2 = 16,
    Cs3 = 24,
    Cs4 = 32,
    Cs5 = 40,
    Cs6 = 48,
    Cs7 = 56,
    Af11 = 10,
    Af12 = 12,
    Af13 = 14,
    Af21 = 18,
    Af22 = 20,
    Af23 = 22,
    Af31 = 26,
    Af32 = 28,
    Af33 = 30,
    Af41 = 34,
    Af42 = 36,
    Af43 = 38,
    Ef = 46,
    Va = 44,
    Le = 1,
}

impl Dscp {
    /// Its six bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }
}
