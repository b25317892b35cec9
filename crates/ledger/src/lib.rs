//! Every packet's fate, and whether the account can be trusted. Sans-IO: the writers take any [`std::io::Write`].
//!
//! - [`Ledger`]: counts per direction, checked against the kernel's own counts for the two devices.
//! - [`FidelityReport`]: the emulation's exactness, compared with a [`Budget`].
//! - [`FlowCounter`]: each flow's packets over time.
//! - [`PayloadClock`]: first and last packet with payload, for each client port.
//! - [`HttpRecorder`]: the bytes of each HTTP request and response on a connection.
//! - [`Position`]: a message's bytes on its connection, with transport overhead.
//! - [`QuicLog`]: QUIC packets' frames, as their sender logs them.
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
mod reordering;
mod stream;
mod table;

pub use capture::{Capture, CaptureOptions};
pub use conservation::{BackgroundReport, DeviceCounters, DirectionReport, HopReport, Ledger, LedgerReport, Passed};
pub use crosswind_packet::{
    Headers, Hold, Place, Sending, Service, TCP, TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, TcpOptions, ThreadName,
    Timer, Trigger, UDP, Waker,
};
pub use dropped::Dropped;
pub use error::LedgerError;
pub use fidelity::{
    Budget, Cpus, ExchangeDelay, FidelityReport, HostStarvation, Observed, Starvation, kernel_drops_in_words,
};
pub use flows::{FlowCounter, FlowInterval};
pub use histogram::{TimeHistogram, TimeReport};
pub use http::{HTTP2_PREFACE, Http2Connection, HttpEnd, HttpFrame, HttpRecorder, HttpWrite};
pub use payload::PayloadClock;
pub use position::Position;
pub use quic::{Frames, QuicFrame, QuicLog, QuicPacket, QuicSpace};
pub use record::{DropCause, PacketRecord, PacketTable, Verdict};
pub use reordering::ReorderingReport;
pub use stream::{HearSent, Recorder, Sink, SinkReport, Wanted};
pub use table::{Column, Row, Table, Values, ns_between};
