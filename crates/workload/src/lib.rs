//! Workloads: tasks for a transport. Each has a file of its own, and a line in `registry` that makes it known.
//!
//! A workload runs a client in the client's namespace and a server in the server's, on one clock, and returns one
//! [`Sample`] for each exchange. An exchange's failure is data; only a failed workload is an error.
//!
//! - `workload`: a workload's interface: its settings and description ([`WorkloadSettings`], [`Workload`]) and its run
//!   ([`Runnable`]).
//! - `client_server`: the frame of workloads on a transport: clients side by side, a server with its streams.
//!   `session` runs both here, or one of them with the other on another machine.
//! - `peer`: programs in place of the client or the server.
//! - `program`, `program_ends`: programs that are the workload. `log`, `kept_output`, `output_tail`: programs' output.
//! - `ending`: when the clients of a flow beside another workload stop.
//! - `warning`: notes for readers of a result.
//! - `closed_loop`, `open_loop`, `schedule`, `timed_streams`: how messages are sent, and when. `answers`: how they are
//!   answered.

mod allowance;
mod answers;
mod client;
mod client_server;
mod closed_loop;
mod connect;
mod context;
mod demand;
mod echo;
mod ending;
mod error;
mod exchange;
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
mod served;
mod server;
mod server_observation;
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
pub use error::{Fault, WorkloadError};
pub use measured::{Measured, OutcomeCount, ProgramEnd};
pub use needs::ConnectionNeeds;
pub use peer::{
    ClientFollower, ClientReport, EndReport, Expected, Notice, Peer, PeerClock, PeerClockEvent, Peers, PeersReport,
    ServerFollower, Violation,
};
pub use progress::{Progress, Snapshot};
pub use registry::{WorkloadConfig, WorkloadKind, kinds};
pub use sample::{PageObject, Sample, SetupTimes};
pub use served::{Clocks, FarServed, FarServer, Served};
pub use server_observation::{OBSERVATION_BYTES, ServerObservation};
pub use warning::Warning;
pub use workload::{PathFacts, Runnable, Workload, WorkloadSettings, number, small};
