//! What happened to every packet, and whether the account can be trusted. Sans-IO: the writers take any [`std::io::Write`].
//!
//! - [`Ledger`]: counts per direction, checked against the kernel's own counts of the two devices.
//! - [`FidelityReport`]: how exact the emulation was, compared with a [`Budget`].
//! - [`FlowCounter`]: what became of the packets of each flow over time.
//! - [`PayloadClock`]: first and last packet with payload, for each client port.
//! - [`HttpRecorder`]: which bytes of a connection each request and response of HTTP has.
//! - [`Position`]: which bytes of its connection a message has, with what transports add.
//! - [`QuicLog`]: what QUIC packets are made of, as their sender says.
//! - [`Table`], [`Capture`]: `*.arrow` and `*.pcapng`. A table's columns are declared beside its row ([`Row`]).
//! - [`Recorder`] and [`Sink`]: from the real-time thread to those files, without waiting for a disk.

mod capture;
mod conservation;
mod dropped;
mod error;
mod fidelity;
mod flows;
mod histogram;
mod http;
mod payload;
mod position;
mod quic;
mod record;
mod stream;
mod table;

pub use capture::{Capture, CaptureOptions};
pub use conservation::{BackgroundReport, DeviceCounters, DirectionReport, HopReport, Ledger, LedgerReport, Passed};
pub use crosswind_packet::{Headers, Service, TCP, TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, TcpOptions, UDP};
pub use dropped::Dropped;
pub use error::LedgerError;
pub use fidelity::{
    Budget, Cpus, ExchangeDelay, FidelityReport, HostStarvation, Observed, Starvation, kernel_drops_in_words,
};
pub use flows::{FlowCounter, FlowInterval};
pub use histogram::{TimeHistogram, TimeReport};
pub use http::{HttpEnd, HttpFrame, HttpRecorder, HttpWrite};
pub use payload::PayloadClock;
pub use position::Position;
pub use quic::{Frames, QuicFrame, QuicLog, QuicPacket, QuicSpace};
pub use record::{DropCause, PacketRecord, PacketTable, Verdict};
pub use stream::{HearSent, Recorder, Sink, SinkReport, Wanted};
pub use table::{Column, Row, Table, Values, ns_between};
