//! The kernel's state of each TCP socket: at its connection's end, and in between on demand.

use crosswind_host::{Clock, TcpInfo, tcp_info};
use crosswind_ledger::Values::{Length, Text, Time, U8, U16, U32, U64};
use crosswind_ledger::{Column, Position, Row};
use crosswind_units::Instant;
use socket2::{SockRef, Socket};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The client's and the server's TCP sockets, and samples of their state.
#[derive(Debug)]
pub struct TcpSockets {
    clock: Clock,
    open: Mutex<Vec<Weak<Watched>>>,
    known: Mutex<Vec<TcpSample>>,
}

/// The kernel's state of a socket.
#[derive(Clone, Debug)]
pub struct TcpSample {
    /// When.
    pub at: Instant,
    /// Its owner: client or server.
    pub host: &'static str,
    /// The client's port.
    pub client_port: u16,
    /// The server's port, for a program's socket.
    pub server_port: Option<u16>,
    /// Taken at its connection's end.
    pub is_last: bool,
    /// The kernel's state.
    pub info: TcpInfo,
    /// Its congestion control, for a program's socket.
    pub congestion_control: Option<Arc<str>>,
    /// Its send buffer in the kernel, for a program's socket.
    pub send_buffer_bytes: Option<u32>,
}

impl Row for TcpSample {
    const TABLE: &'static str = "tcp.arrow";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::required("at_ns", Time(|row| Some(row.at)), "When its kernel was asked."),
        Column::required("host", Text(|row| Some(row.host)), "Whose end it is: client or server."),
        Column::required("client_port", U16(|row| Some(row.client_port)), "The client's port."),
        Column::optional(
            "server_port",
            U16(|row| row.server_port),
            "The server's port; null for Crosswind's own sockets, as are the last two.",
        ),
        Column::required(
            "last",
            U8(|row| Some(row.is_last.into())),
            "1 at the end of the connection, or where a program's socket was known last, else 0.",
        ),
        Column::required(
            "congestion_window",
            U32(|row| Some(row.info.congestion_window)),
            "Congestion window, segments.",
        ),
        Column::optional(
            "slow_start_threshold",
            U32(|row| row.info.slow_start_threshold),
            "Up to where the window grows by slow start, segments; null before the first loss.",
        ),
        Column::required("segment_bytes", U32(|row| Some(row.info.segment_bytes)), "Bytes of a segment."),
        Column::required(
            "unacknowledged",
            U32(|row| Some(row.info.unacknowledged)),
            "Segments that were sent and are not acknowledged.",
        ),
        Column::required("lost", U32(|row| Some(row.info.lost)), "Of those, the ones that it takes for lost."),
        Column::required(
            "sent_again",
            U32(|row| Some(row.info.sent_again)),
            "Of those, the ones that it has sent again.",
        ),
        Column::required("srtt_ns", Length(|row| ns(row.info.smoothed_round_trip_us)), "Smoothed round-trip time."),
        Column::required("rttvar_ns", Length(|row| ns(row.info.round_trip_variation_us)), "Its mean deviation."),
        Column::optional(
            "min_rtt_ns",
            Length(|row| row.info.shortest_round_trip_us.and_then(ns)),
            "The shortest round-trip time that it has measured lately.",
        ),
        Column::required("rto_ns", Length(|row| ns(row.info.retransmission_timeout_us)), "Retransmission timeout."),
        Column::required(
            "delivery_rate_bps",
            U64(|row| Some(row.info.delivery_rate * 8)),
            "How fast data has arrived lately.",
        ),
        Column::required(
            "sent_bytes",
            U64(|row| Some(row.info.sent_bytes)),
            "Data that was sent, retransmissions included.",
        ),
        Column::required(
            "retransmitted_bytes",
            U64(|row| Some(row.info.retransmitted_bytes)),
            "Data that was sent again.",
        ),
        Column::required(
            "retransmitted",
            U32(|row| Some(row.info.retransmitted)),
            "Segments that were sent again, those of the handshake included.",
        ),
        Column::required(
            "unsent_bytes",
            U32(|row| Some(row.info.unsent_bytes)),
            "Data in the send buffer that was not sent yet.",
        ),
        Column::required(
            "busy_ns",
            Length(|row| ns(row.info.busy_us)),
            "For how long so far something was in flight or to be sent.",
        ),
        Column::required(
            "receive_window_limited_ns",
            Length(|row| ns(row.info.receive_window_limited_us)),
            "Of that, for how long the receiver's window held it back.",
        ),
        Column::required(
            "send_buffer_limited_ns",
            Length(|row| ns(row.info.send_buffer_limited_us)),
            "Of that, for how long nothing more was there to be sent because the send buffer was full.",
        ),
        Column::optional("congestion_control", Text(|row| row.congestion_control.as_deref()), "Congestion control."),
        Column::optional(
            "send_buffer_bytes",
            U32(|row| row.send_buffer_bytes),
            "Send buffer in the kernel: twice the size that a program has set (SO_SNDBUF).",
        ),
    ];
}

#[allow(clippy::unnecessary_wraps)] // as columns take it
fn ns(microseconds: impl Into<u64>) -> Option<i64> {
    Some((microseconds.into() * 1000) as i64)
}

impl TcpSockets {
    /// None yet. Times are `clock`'s.
    pub fn new(clock: Clock) -> Self {
        Self { clock, open: Mutex::default(), known: Mutex::default() }
    }

    /// Asks the kernel about every open socket.
    pub fn sample(&self) {
        let open: Vec<Arc<Watched>> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|it| it.strong_count() > 0);
            open.iter().filter_map(Weak::upgrade).collect()
        };
        for watched in open {
            watched.note(false);
        }
    }

    /// The samples in order of time; later ones are not kept.
    pub fn take(&self) -> Vec<TcpSample> {
        std::mem::take(&mut *self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A socket with a sample at its connection's end.
#[derive(Debug)]
pub(crate) struct Watched {
    socket: Socket,
    host: &'static str,
    client_port: u16,
    sockets: Arc<TcpSockets>,
}

impl Watched {
    /// Watches `socket`, if `sockets` are to be watched. The connection is not closed before the watch ends.
    pub(crate) fn start(
        sockets: Option<&Arc<TcpSockets>>,
        socket: &SockRef<'_>,
        host: &'static str,
        client_port: u16,
    ) -> Option<Arc<Self>> {
        let sockets = Arc::clone(sockets?);
        let watched = Arc::new(Self { socket: socket.try_clone().ok()?, host, client_port, sockets });
        watched.sockets.open.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&watched));
        Some(watched)
    }

    /// How many bytes were written to it.
    fn written(&self) -> Option<u64> {
        let info = tcp_info(self.socket.as_fd())?;
        Some(info.sent_bytes.saturating_sub(info.retransmitted_bytes) + u64::from(info.unsent_bytes))
    }

    fn note(&self, is_last: bool) {
        let Some(info) = tcp_info(self.socket.as_fd()) else { return };
        let at = self.sockets.clock.now();
        let sample = TcpSample {
            at,
            host: self.host,
            client_port: self.client_port,
            server_port: None,
            is_last,
            info,
            congestion_control: None,
            send_buffer_bytes: None,
        };
        self.sockets.known.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.note(true);
    }
}

/// The last message's position among the bytes written to a socket, if watched.
pub(crate) struct Written {
    watched: Option<Arc<Watched>>,
    start: u64,
    end: Option<u64>,
}

impl Written {
    /// No message yet.
    pub(crate) fn new(watched: Option<Arc<Watched>>) -> Self {
        let start = watched.as_ref().and_then(|watched| watched.written()).unwrap_or(0);
        Self { watched, start, end: None }
    }

    pub(crate) fn note_message(&mut self) {
        self.start = self.end.unwrap_or(self.start);
        self.note_part();
    }

    pub(crate) fn note_part(&mut self) {
        self.end = self.watched.as_ref().and_then(|watched| watched.written());
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.end.map(|end| Position::Bytes { start: self.start, end })
    }
}
