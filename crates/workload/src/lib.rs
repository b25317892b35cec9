//! Workloads: what is asked of a transport. Each has a file of its own, and a line in `registry` that makes it known.
//!
//! A workload runs a client in the client's namespace and a server in the server's, on one clock, and
//! returns one [`Sample`] for each exchange. Whatever happens to an exchange is data; only a workload that cannot run is an error.
//!
//! - `workload`: what a workload says of itself ([`WorkloadSettings`], [`Workload`]) and does ([`Runnable`]).
//! - `client_server`: the frame of those that use a transport: clients on lanes side by side, a server with its streams.
//!   `session` runs both here, `far` one of them with the other on another machine.
//! - `peer`: programs that take the place of the client or the server.
//! - `program`, `program_ends`: programs that are the workload. `log`, `kept_output`, `last_words`: what programs write.
//! - `ending`: when the clients of a flow that runs beside another workload stop.
//! - `warning`: what a reader of a result should know.
//! - `closed_loop`, `open_loop`, `schedule`, `timed_streams`: how messages are sent, and when. `answers`: how they are answered.

mod allowance;
mod answers;
mod client_server;
mod closed_loop;
mod connect;
mod context;
mod demand;
mod echo;
mod ending;
mod error;
mod exchange;
mod far;
mod lane;
mod measured;
mod message;
mod multiplex;
mod needs;
mod open_loop;
mod pace;
mod page;
mod peer;
mod probes;
mod program;
mod programs;
mod progress;
mod registry;
mod sample;
mod schedule;
mod seen;
mod served;
mod server;
pub mod serving;
mod session;
mod timed_streams;
mod transfer;
mod warning;
mod workload;

pub use allowance::{Allowance, NUMBERED_BYTES};
pub use context::Context;
pub use demand::TrafficPattern;
pub use ending::Ending;
pub use error::WorkloadError;
pub use measured::{Measured, OutcomeCount, ProgramEnd};
pub use needs::ConnectionNeeds;
pub use peer::{
    ClientFollower, ClientReport, EndReport, Expected, Notice, Peer, PeerClock, PeerClockEvent, Peers, PeersReport,
    ServerFollower, Violation,
};
pub use progress::{Fault, Progress, Snapshot};
pub use registry::{WorkloadConfig, WorkloadKind, kinds};
pub use sample::{PageObject, Sample, SetupTimes};
pub use seen::{SEEN_BYTES, Seen};
pub use served::{Clocks, FarServed, FarServer, Served};
pub use warning::{Warning, WarningReport};
pub use workload::{PathFacts, Runnable, Workload, WorkloadSettings};
