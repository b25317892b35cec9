//! The Linux edge: namespaces, TUN, veth, routes, sysctls, the real clock, privileges. The only crate with `unsafe`.
#![allow(unsafe_code)]

mod alarm;
mod backend;
mod backlog;
mod clock;
mod error;
mod ethtool;
mod forwarder;
mod ifreq;
mod namespace;
mod netlink;
mod placement;
pub mod privilege;
mod probe;
mod profile;
mod profiler;
pub mod program;
mod punctuality;
pub mod realtime;
mod slab;
mod sockets;
mod starvation;
pub mod sysctl;
mod testbed;
mod timer;
mod traffic;
mod tun;

pub use backend::Backend;
pub use clock::{Clock, thread_cpu_ns};
pub use error::{HostError, Kind, Result};
pub use forwarder::Report;
pub use namespace::Namespace;
pub use placement::{Cpus, Placement};
pub use probe::{Finding, probe};
pub use profile::{HostConfig, Profile};
pub use profiler::{Frame, Profiler, Sample, Sampled, Samples};
pub use punctuality::{Punctual, Punctuality};
pub use starvation::Threads;
pub use testbed::{Ended, Family, Plan, Readback, Testbed};
pub use timer::Timer;
pub use traffic::{Amount, Traffic, TrafficCounters};
