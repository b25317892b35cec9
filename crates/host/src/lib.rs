//! The Linux edge: namespaces, TUN, veth, routes, sysctls, the real clock, privileges. The only crate with `unsafe`.
#![allow(unsafe_code)]

mod backend;
mod blocks;
mod client_streams;
mod clock;
mod emulator;
mod error;
mod ethtool;
pub mod guest;
mod host_names;
mod ifreq;
mod key_logs;
mod namespace;
pub mod netem;
mod netlink;
pub mod open_files;
mod packet_socket;
mod placement;
pub mod privilege;
mod probe;
pub mod program;
mod program_times;
pub mod realtime;
mod regular_files;
mod sampler;
mod settings;
mod sockets;
mod starvation;
pub mod sysctl;
mod tcp_info;
mod terminal;
mod testbed;
mod timer;
mod tun;

pub use backend::Backend;
pub use blocks::{receive_block, set_low_water_mark};
pub use client_streams::ClientStreams;
pub use clock::{Clock, thread_cpu_ns, wall_clock_error_ns};
pub use emulator::{Amount, EmulatorReport, Punctual, Punctuality, Traffic, TrafficCounters};
pub use error::{ErrorKind, HostError, Result};
pub use key_logs::KeyLogs;
pub use namespace::Namespace;
pub use packet_socket::{CapturedPacket, PacketSocket};
pub use placement::{Cpus, Placement};
pub use probe::{Finding, probe};
pub use program_times::ProgramTimes;
pub use regular_files::{open_regular, read_regular};
pub use sampler::{Frame, Sample, SampledThread, Sampler, Samples};
pub use settings::{
    Dscp, EmulatorPlace, HostClock, HostConfig, HostGroup, HostProfile, HostProfileDescription, MtuProbing, Qdisc,
    TickPhase,
};
pub use starvation::Threads;
pub use tcp_info::{TcpInfo, tcp_info};
pub use testbed::{Family, Pair, Readback, Testbed, TestbedReport, TestbedSettings};
pub use timer::Timer;
