//! Codepoints of differentiated services.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The codepoint of packets, by its name in IANA's registry (RFC 2474, 2597, 3246, 5865, 8622).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each is the name
pub enum Dscp {
    Cs0,
    Cs1,
    Cs2,
    Cs3,
    Cs4,
    Cs5,
    Cs6,
    Cs7,
    Af11,
    Af12,
    Af13,
    Af21,
    Af22,
    Af23,
    Af31,
    Af32,
    Af33,
    Af41,
    Af42,
    Af43,
    Ef,
    Va,
    Le,
}

impl Dscp {
    /// Its six bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Cs0 => 0,
            Self::Cs1 => 8,
            Self::Cs2 => 16,
            Self::Cs3 => 24,
            Self::Cs4 => 32,
            Self::Cs5 => 40,
            Self::Cs6 => 48,
            Self::Cs7 => 56,
            Self::Af11 => 10,
            Self::Af12 => 12,
            Self::Af13 => 14,
            Self::Af21 => 18,
            Self::Af22 => 20,
            Self::Af23 => 22,
            Self::Af31 => 26,
            Self::Af32 => 28,
            Self::Af33 => 30,
            Self::Af41 => 34,
            Self::Af42 => 36,
            Self::Af43 => 38,
            Self::Ef => 46,
            Self::Va => 44,
            Self::Le => 1,
        }
    }
}
