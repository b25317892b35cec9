//! What some settings of the hosts may be.

use crosswind_settings::Layered;
use crosswind_units::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bundle of host settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostProfile {
    /// Linux as it is.
    #[default]
    Linux,
    /// FreeBSD 8.2.
    #[serde(rename = "freebsd-8")]
    FreeBsd8,
}

impl Layered for HostProfile {}

impl HostProfile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Linux, Self::FreeBsd8];
}

named! {
/// The clock of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostClock {
    /// Real where the machine allows that, else virtual. Whoever starts a cell decides; a cell that is started so takes
    /// the clock that it finds.
    #[default]
    Auto = "auto",
    /// The machine's, with the machine's noise.
    Real = "real",
    /// That of a kernel of its own, which jumps over waiting: nothing is measured of the machine.
    Virtual = "virtual",
}
}

impl Layered for HostClock {}

/// Where the emulator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatorPlace {
    /// In a thread of the cell's process, between two TUN devices.
    Process,
    /// In the kernel of virtual time, which is faster.
    Kernel,
}

/// As `net.ipv4.tcp_mtu_probing` has it (RFC 4821).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MtuProbing {
    /// Never.
    Off = 0,
    /// Once retransmissions say that large packets get lost.
    BlackHole = 1,
    /// From the start.
    Always = 2,
}

impl MtuProbing {
    /// The value of the sysctl.
    pub(crate) const fn number(self) -> u32 {
        self as u32
    }
}

named! {
/// A queueing discipline with the kernel's default parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is what tc(8) says of its name
pub enum Qdisc {
    PfifoFast = "pfifo_fast",
    Pfifo = "pfifo",
    Bfifo = "bfifo",
    Fq = "fq",
    Codel = "codel",
    FqCodel = "fq_codel",
    Cake = "cake",
    Pie = "pie",
}
}
