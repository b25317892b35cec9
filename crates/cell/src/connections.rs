//! The time of programs' connections by cause.

use crate::CellError;
use crate::limits::ConnectionLimits;
use crate::pieces::ConnectionPiece;
use crate::table::{ns, write_table};
use crosswind_attribution::{DelayCause, Flow, Hosts, ProgramFacts, Quic, flows};
use crosswind_ledger::Values::{Length, Text, Time, U16, U32, U64};
use crosswind_ledger::{Column, PacketRecord, Row, TCP};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::path::Path;

/// Intervals kept for all connections together.
const MOST_PIECES: usize = 100_000;

/// A connection, or the datagrams between two ports.
#[derive(Debug)]
pub struct ConnectionRow {
    connection: u64,
    flow: Flow,
}

const fn sent(row: &ConnectionRow, side: Side) -> crosswind_attribution::Sent {
    row.flow.sent[side as usize]
}

fn protocol(flow: &Flow) -> &'static str {
    match (flow.protocol, flow.quic) {
        (TCP, _) => "tcp",
        (_, Quic::Opened) => "quic",
        (_, Quic::Sealed | Quic::None) => "udp",
    }
}

/// The sending host of direction `side`.
fn host(side: Side) -> &'static str {
    crosswind_attribution::Place::sender(side).name()
}

impl Row for ConnectionRow {
    const TABLE: &'static str = "connections.arrow";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::required("connection", U64(|row| Some(row.connection)), "Its number, in the order of beginning."),
        Column::required(
            "protocol",
            Text(|row| Some(protocol(&row.flow))),
            "tcp; quic, whose keys are known; or udp: the datagrams between two ports.",
        ),
        Column::required("client_port", U16(|row| Some(row.flow.client_port)), "Its port at the client's host."),
        Column::required("server_port", U16(|row| Some(row.flow.server_port)), "Its port at the server's host."),
        Column::required(
            "opened_by",
            Text(|row| Some(host(row.flow.opened))),
            "Who sent its first packet: client or server.",
        ),
        Column::required("from_ns", Time(|row| Some(row.flow.from)), "When its first packet entered the path."),
        Column::required(
            "to_ns",
            Time(|row| Some(row.flow.to)),
            "When its last packet arrived, or was lost; of one that nothing answered, when nobody waited for that any more, as far as it is known.",
        ),
        Column::required(
            "beginning",
            Text(|row| Some(row.flow.beginning.name())),
            "handshake; refused: with RST; unanswered: nothing came back; before: earlier than its first known packet; or datagram.",
        ),
        Column::required(
            "ending",
            Text(|row| Some(row.flow.ending.name())),
            "closed: with FIN; reset: with RST; or open, as far as packets tell.",
        ),
        Column::required(
            "packets_forward",
            U64(|row| Some(sent(row, Side::Forward).packets)),
            "Packets that the client sent.",
        ),
        Column::required(
            "packets_reverse",
            U64(|row| Some(sent(row, Side::Reverse).packets)),
            "Packets that the server sent.",
        ),
        Column::required(
            "bytes_forward",
            U64(|row| Some(sent(row, Side::Forward).bytes)),
            "Payload in them, what was sent again included.",
        ),
        Column::required("bytes_reverse", U64(|row| Some(sent(row, Side::Reverse).bytes)), "The same of the server."),
        Column::required(
            "lost_forward",
            U64(|row| Some(sent(row, Side::Forward).lost)),
            "Packets of the client that did not arrive as they were sent.",
        ),
        Column::required("lost_reverse", U64(|row| Some(sent(row, Side::Reverse).lost)), "The same of the server."),
        Column::required(
            "again_forward",
            U64(|row| Some(sent(row, Side::Forward).again)),
            "TCP segments of the client with nothing that it had not sent before; datagrams of QUIC with bytes that it had.",
        ),
        Column::required("again_reverse", U64(|row| Some(sent(row, Side::Reverse).again)), "The same of the server."),
        Column::required(
            "turns",
            U32(|row| Some(row.flow.turns)),
            "How often one program waited for what the other was to send: two are a round trip.",
        ),
    ];
}

/// A connection's time by cause.
#[derive(Debug)]
pub struct ConnectionPart {
    connection: u64,
    data: Side,
    part: DelayCause,
    time: Duration,
    times: Option<u32>,
    window_bytes: Option<u64>,
    waited_for: Option<String>,
}

impl Row for ConnectionPart {
    const TABLE: &'static str = "connection_parts.arrow";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::required("connection", U64(|row| Some(row.connection)), "Number of the connection."),
        Column::required(
            "data",
            Text(|row| Some(row.data.name())),
            "forward or reverse: the direction of the data that waited for it.",
        ),
        Column::required("part", Text(|row| Some(row.part.name())), "What it was spent on: a part."),
        Column::required(
            "time_ns",
            Length(|row| ns(row.time)),
            "How long. All of a connection's are the time from its first packet to its last.",
        ),
        Column::optional("times", U32(|row| row.times), "Of a window, how often it was waited for."),
        Column::optional(
            "window_bytes",
            U64(|row| row.window_bytes),
            "Of a window, the most bytes that were in flight, or were allowed, while it held something back.",
        ),
        Column::optional(
            "waited_for",
            Text(|row| row.waited_for.as_deref()),
            "Of a timer, the thread that it woke; of another connection, its port: where there were several, the one of the longest time.",
        ),
    ];
}

/// Writes each connection's time by cause. Programs had ended at `end`; times count from `zero`.
pub fn write_connections(
    directory: &Path,
    packets: &[PacketRecord],
    facts: &ProgramFacts,
    hosts: Hosts,
    [zero, end]: [Instant; 2],
) -> Result<(), CellError> {
    let flows = flows(packets, facts, hosts, MOST_PIECES, end);
    let mut rows: Vec<_> = (0..).zip(flows).map(|(connection, flow)| ConnectionRow { connection, flow }).collect();
    let parts: Vec<_> = rows.iter().flat_map(parts).collect();
    let limits: Vec<_> =
        rows.iter().filter_map(|row| Some(ConnectionLimits::new(row.connection, row.flow.changed?))).collect();
    let pieces = |row: &mut ConnectionRow| {
        let (connection, pieces) = (row.connection, std::mem::take(&mut row.flow.pieces));
        pieces.into_iter().map(move |piece| ConnectionPiece::new(connection, piece))
    };
    let pieces: Vec<_> = rows.iter_mut().flat_map(pieces).collect();
    write_table(directory, &rows, zero)?;
    write_table(directory, &parts, zero)?;
    write_table(directory, &limits, zero)?;
    write_table(directory, &pieces, zero)
}

fn parts(row: &ConnectionRow) -> Vec<ConnectionPart> {
    let of_side = |data: Side| {
        let by_part = DelayCause::ALL.iter().zip(row.flow.spent[data as usize]);
        by_part.filter(|it| it.1 > Duration::ZERO).map(move |(&part, time)| {
            let window = row.flow.windows.iter().find(|it| it.data == data && it.part == part);
            let other = row.flow.others.iter().find(|it| it.data == data && it.part == part);
            ConnectionPart {
                connection: row.connection,
                data,
                part,
                time,
                times: window.map(|it| it.times),
                window_bytes: window.map(|it| it.bytes),
                waited_for: other.map(|it| it.name.clone()),
            }
        })
    };
    Side::BOTH.into_iter().flat_map(of_side).collect()
}
