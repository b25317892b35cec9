//! Peers' output, line by line: accepted, or refused with which message.

use super::client_report::{ClientFollower, Expected, Notice};
use super::events::{LONGEST_LINE, Violation};
use super::server_report::ServerFollower;
use crate::demand::TrafficPattern;
use crate::warning::Warning;
use crosswind_transport::Outcome;
use crosswind_units::Instant;
use serde_json::{Value, json};

const ECHO: TrafficPattern = TrafficPattern::Exchanges {
    count: 2,
    connections: 1,
    request_bytes: 10,
    reply_bytes: 10,
    new_connections: false,
    rate_per_s: None,
};
/// The cell's clock began here, by `CLOCK_MONOTONIC`.
const ORIGIN_NS: u64 = 1_000_000_000_000;
const STARTED: Instant = Instant::from_nanos(5_000_000_000);
const NOW: Instant = Instant::from_nanos(9_000_000_000);

fn expected(traffic: &TrafficPattern) -> Expected {
    Expected::new("wss", 2, traffic, ORIGIN_NS, STARTED)
}

/// A client whose clock showed 0 when it was started.
fn ready() -> Value {
    let monotonic_ns = ORIGIN_NS + STARTED.as_nanos();
    json!({"event": "ready", "implementation": "Test 1",
           "clock": {"name": "performance.now", "resolution_ns": 5000, "monotonic_ns": monotonic_ns}})
}

fn connected(connection: u32) -> Value {
    json!({"event": "connected", "connection": connection, "transport": "wss", "setup_ns": 700, "security_ns": 300})
}

fn sample(exchange: u64) -> Value {
    json!({"event": "sample", "exchange": exchange, "connection": 0, "sent_ns": 1000 + exchange, "received_ns": 2000 + exchange,
           "sent_bytes": 10, "received_bytes": 10, "outcome": "ok"})
}

fn finished() -> Value {
    json!({"event": "finished"})
}

/// `event` with some keys set anew; null removes nothing, it is a value.
fn with(mut event: Value, keys: &Value) -> Value {
    for (key, value) in keys.as_object().unwrap() {
        event[key] = value.clone();
    }
    event
}

fn text_of(events: &[Value]) -> String {
    events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

fn follow(traffic: &TrafficPattern, text: &[u8]) -> Result<ClientFollower, Violation> {
    let mut follower = ClientFollower::new(expected(traffic));
    follower.handle_bytes(NOW, text)?;
    follower.handle_end(NOW)?;
    Ok(follower)
}

/// Why a client with these events is refused, at once or at its end.
fn refused(events: &[Value]) -> String {
    let report = follow(&ECHO, text_of(events).as_bytes()).and_then(ClientFollower::into_report);
    report.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_client_that_does_as_it_should_is_turned_into_samples_on_the_cells_clock() {
    let events = [
        ready(),
        connected(0),
        with(sample(1), &json!({"outcome": "timeout", "received_ns": null, "received_bytes": 0, "error": "no answer"})),
        sample(0),
        json!({"event": "warning", "message": "the clock is coarse"}),
        json!({"event": "finished", "facts": {"retransmits": 3}}),
    ];
    let mut follower = follow(&ECHO, text_of(&events).as_bytes()).unwrap();
    let notices: Vec<_> = std::iter::from_fn(|| follower.poll_notice()).collect();
    let expected = [Notice::Ready, Notice::ExchangeDone(None), Notice::ExchangeDone(Some(1000)), Notice::Finished];
    assert_eq!(notices, expected);
    let report = follower.into_report().unwrap();
    assert_eq!((report.implementation.as_str(), report.is_verified), ("Test 1", true));
    let [first, second] = &report.samples[..] else { panic!("{:?}", report.samples) };
    assert_eq!((first.exchange, second.exchange), (0, 1));
    assert_eq!(first.sent, Some(Instant::from_nanos(STARTED.as_nanos() + 1000)));
    assert_eq!(first.received, Some(Instant::from_nanos(STARTED.as_nanos() + 2000)));
    let setup = first.setup.unwrap();
    assert_eq!((setup.total_ns, setup.security_ns, setup.transport_ns), (700, Some(300), None));
    assert_eq!((second.setup, second.outcome, second.received), (None, Outcome::Timeout, None));
    assert_eq!(report.first_errors.into_iter().collect::<Vec<_>>(), [(Outcome::Timeout, "no answer".to_owned())]);
    assert_eq!(
        (report.warnings, report.facts["retransmits"]),
        (vec![Warning::peer("the clock is coarse".to_owned())], 3.0)
    );
}

#[test]
fn output_may_be_cut_anywhere_and_need_not_end_with_a_newline() {
    let text = text_of(&[ready(), connected(0), sample(0), sample(1), finished()]);
    let mut follower = ClientFollower::new(expected(&ECHO));
    for byte in text.trim_end().as_bytes() {
        follower.handle_bytes(NOW, std::slice::from_ref(byte)).unwrap();
    }
    follower.handle_end(NOW).unwrap();
    assert_eq!(follower.into_report().unwrap().samples.len(), 2);
}

#[test]
fn a_line_that_is_no_event_is_refused_by_its_number_and_quoted() {
    let refused = |text: &[u8]| follow(&ECHO, text).map(|_| ()).unwrap_err().to_string();
    let after_ready = |line: &str| refused(format!("{}\n\n{line}\n", ready()).as_bytes());
    assert_eq!(
        refused(b"Traceback (most recent call last):\n"),
        "line 1 of its output: it is no JSON object: Traceback (most recent call last):"
    );
    assert_eq!(after_ready("[1]"), "line 3 of its output: it is no JSON object: [1]");
    assert_eq!(after_ready("{]"), "line 3 of its output: key must be a string: {]");
    assert!(
        after_ready(r#"{"event": "sent"}"#).contains("unknown variant `sent`, expected one of `ready`, `connected`")
    );
    let unknown = with(sample(0), &json!({"colour": 1})).to_string();
    assert!(
        after_ready(&unknown).starts_with("line 3 of its output: unknown field `colour`"),
        "{}",
        after_ready(&unknown)
    );
    assert!(after_ready(r#"{"event": "connected"}"#).contains("missing field `connection`"));
    let fraction = with(sample(0), &json!({"sent_ns": 1.5})).to_string();
    assert!(after_ready(&fraction).contains("invalid type: floating point `1.5`, expected u64"));
    assert!(after_ready(&with(sample(0), &json!({"outcome": "lost"})).to_string()).contains("unknown variant `lost`"));
    assert!(refused(b"\xff\xfe\n").starts_with("line 1 of its output: "));
}

#[test]
fn a_line_without_an_end_is_refused_before_it_is_kept() {
    let mut follower = ClientFollower::new(expected(&ECHO));
    let chunk = vec![b'x'; 16 * 1024];
    let taken = (0..1000).take_while(|_| follower.handle_bytes(NOW, &chunk).is_ok()).count();
    assert_eq!(taken, LONGEST_LINE / chunk.len());
    let whole = vec![b' '; 100 << 20];
    let refused = follow(&ECHO, &whole).map(|_| ()).unwrap_err().to_string();
    assert_eq!(refused, "line 1 of its output: it has more than 65536 bytes");
}

#[test]
fn events_out_of_order_are_refused() {
    assert_eq!(refused(&[connected(0)]), "line 1 of its output: the first event is not \"ready\"");
    assert_eq!(refused(&[ready(), ready()]), "line 2 of its output: it is ready for the second time");
    assert_eq!(
        refused(&[ready(), connected(0), connected(0)]),
        "line 3 of its output: connection 0 is connected for the second time; a new connection has a new number"
    );
    let whole = [ready(), connected(0), sample(0), sample(1), finished()];
    let more = [&whole[..], &[sample(0)]].concat();
    assert_eq!(refused(&more), "line 6 of its output: there is an event after \"finished\"");
}

#[test]
fn there_is_one_sample_for_each_exchange() {
    assert_eq!(refused(&[ready(), finished()]), "it finished after it had reported 0 of 2 exchanges");
    assert_eq!(
        refused(&[ready(), connected(0), sample(1), finished()]),
        "it finished after it had reported 1 of 2 exchanges"
    );
    assert_eq!(refused(&[ready(), connected(0), sample(0), sample(1)]), "it did not finish");
    assert_eq!(
        refused(&[ready(), connected(0), sample(2)]),
        "line 3 of its output: there is no exchange 2: the workload has 2, counted from 0"
    );
    assert_eq!(
        refused(&[ready(), connected(0), sample(0), sample(0)]),
        "line 4 of its output: exchange 0 is reported for the second time"
    );
}

#[test]
fn a_sample_that_cannot_be_is_refused() {
    let refused = |keys: &Value| refused(&[ready(), connected(0), with(sample(0), keys)]);
    assert_eq!(refused(&json!({"received_ns": 999})), "line 3 of its output: the times of exchange 0 run backwards");
    assert_eq!(
        refused(&json!({"received_ns": null})),
        "line 3 of its output: exchange 0 is ok, and has no time of sending or of receiving"
    );
    assert_eq!(
        refused(&json!({"received_bytes": 1})),
        "line 3 of its output: exchange 0 is ok with 10 bytes sent and 1 received, where the workload has 10 and 10"
    );
    // The program has run for four seconds.
    assert_eq!(
        refused(&json!({"received_ns": 6_000_000_000_u64})),
        "line 3 of its output: exchange 0 has a time 1.990 s in the future: is monotonic_ns right, and is it nanoseconds?"
    );
    let huge = refused(&json!({"sent_ns": u64::MAX, "received_ns": u64::MAX}));
    assert!(huge.contains("in the future"), "{huge}");
}

#[test]
fn a_clock_that_began_before_the_program_did_is_refused() {
    let mut early = ready();
    early["clock"]["monotonic_ns"] = json!(0);
    let refused = refused(&[early, connected(0), sample(0)]);
    assert!(refused.contains("before it was started: is monotonic_ns right"), "{refused}");
}

#[test]
fn the_transport_in_use_has_to_be_that_of_the_cell() {
    assert_eq!(
        refused(&[ready(), with(connected(0), &json!({"transport": "websocket"}))]),
        "line 2 of its output: connection 0 is websocket, where the cell asks for wss"
    );
    let unknown = with(connected(0), &json!({"transport": null}));
    let report = follow(&ECHO, text_of(&[ready(), unknown, sample(0), sample(1), finished()]).as_bytes());
    assert!(!report.unwrap().into_report().unwrap().is_verified);
    assert_eq!(
        refused(&[ready(), sample(0), sample(1), finished()]),
        "exchange 0 is ok, and its connection 0 was never connected"
    );
    assert_eq!(
        refused(&[ready(), with(connected(0), &json!({"upgrade_ns": 800}))]),
        "line 2 of its output: a part of setting up connection 0 took longer than all of it"
    );
}

#[test]
fn connections_of_one_exchange_each_are_one_unit_of_statistics() {
    let connect = TrafficPattern::Handshakes { count: 2, connections: 1 };
    let second = with(sample(1), &json!({"connection": 7}));
    let events = [ready(), connected(0), connected(7), sample(0), second, finished()];
    let report = follow(&connect, text_of(&events).as_bytes()).unwrap().into_report().unwrap();
    let units: Vec<_> = report.samples.iter().map(|sample| (sample.connection, sample.setup.is_some())).collect();
    assert_eq!(units, [(0, true), (0, true)]);
}

#[test]
fn objects_of_a_page_are_kept_in_order_and_cannot_run_backwards() {
    let pages = TrafficPattern::Pages {
        count: 2,
        connections: 1,
        html_bytes: 1,
        objects_bytes: 1,
        objects: 1,
        request_bytes: 1,
    };
    let object = |page: u64, queued_ns: u64| {
        json!({"event": "object", "page": page, "object": format!("image {page}"), "connection": 0, "queued_ns": queued_ns,
               "sent_ns": 1500, "first_ns": 1600, "received_ns": 1700, "bytes": 9, "outcome": "ok"})
    };
    let own = [ready(), connected(0), object(1, 1400), object(0, 1300), sample(0), sample(1), finished()];
    let report = follow(&pages, text_of(&own).as_bytes()).unwrap().into_report().unwrap();
    assert_eq!(report.objects.iter().map(|object| object.page).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(report.objects[0].queued, Instant::from_nanos(STARTED.as_nanos() + 1300));
    let refused = |object: Value| {
        let text = text_of(&[ready(), object]);
        follow(&pages, text.as_bytes()).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        refused(object(0, 1501)),
        "line 2 of its output: the times of object \"image 0\" of page 0 run backwards"
    );
    assert_eq!(refused(object(2, 1)), "line 2 of its output: there is no page 2: the workload has 2");
}

#[test]
fn an_error_of_the_clients_own_is_heard_before_it_is_ready_too() {
    let text = b"{\"event\": \"error\", \"message\": \"no browser\", \"hint\": \"apt install chromium\"}\n";
    let mut follower = follow(&ECHO, text).unwrap();
    let (message, hint) = ("no browser".to_owned(), Some("apt install chromium".to_owned()));
    assert_eq!(follower.poll_notice(), Some(Notice::Failed { message, hint }));
}

#[test]
fn warnings_without_end_are_refused() {
    let warnings = vec![json!({"event": "warning", "message": "again"}); 101];
    let events = [vec![ready()], warnings].concat();
    assert_eq!(refused(&events), "line 102 of its output: there are more than 100 warnings");
}

#[test]
fn a_server_listens_once_and_says_nothing_else_but_warnings_and_errors() {
    let mut server = ServerFollower::default();
    server.handle_bytes(b"{\"event\": \"listening\", \"implementation\": \"Node 20\"}\n").unwrap();
    server.handle_bytes(b"{\"event\": \"warning\", \"message\": \"slow\"}\n").unwrap();
    assert_eq!(
        (server.implementation(), server.warnings()),
        (Some("Node 20"), &[Warning::peer("slow".to_owned())][..])
    );
    server.handle_bytes(b"{\"event\": \"error\", \"message\": \"out of memory\"}\n").unwrap();
    assert_eq!(server.failed(), Some(&("out of memory".to_owned(), None)));
    let again = server.handle_bytes(b"{\"event\": \"listening\", \"implementation\": \"Node 20\"}\n").unwrap_err();
    assert_eq!(again.to_string(), "line 4 of its output: it listens for the second time");
    let mut other = ServerFollower::default();
    let refused = other.handle_bytes(b"{\"event\": \"ready\"}\n").unwrap_err().to_string();
    assert!(refused.starts_with("line 1 of its output: unknown variant `ready`"), "{refused}");
}
