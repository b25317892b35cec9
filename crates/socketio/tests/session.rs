//! Sessions on virtual time. Texts marked "official" were recorded from socket.io 4.8.4 and socket.io-client 4.8.4.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use bytes::Bytes;
use crosswind_socketio::{
    CLIENT_CONNECT_TIMEOUT_NS, Carrier, CloseReason, Error, Event, Handshake, Joined, MessageKind, Payload,
    SERVER_CONNECT_TIMEOUT_NS, Session,
};

// official
const OPEN: &str =
    r#"0{"sid":"b54JN-gwkJECpyBpAAAA","upgrades":[],"pingInterval":300,"pingTimeout":200,"maxPayload":1000000}"#;
const CONNECTED: &str = r#"40{"sid":"eqdxkd5CuZ-976vhAAAA"}"#;
const SOCKET_SID: &str = "eqdxkd5CuZ-976vhAAAA";
const BINARY_EVENT: &str = r#"451-["echo",{"_placeholder":true,"num":0}]"#;
const RESUME: &str = r#"0{"sid":"b54JN-gwkJECpyBpAAAA"}"#;

const fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

fn handshake() -> Handshake {
    Handshake::parse(&OPEN[1..]).unwrap()
}

fn binary(bytes: &'static [u8]) -> Payload {
    Payload::Binary(Bytes::from_static(bytes))
}

fn sent(session: &mut Session) -> Vec<Payload> {
    std::iter::from_fn(|| session.poll_payload()).collect()
}

fn events(session: &mut Session) -> Vec<Event> {
    std::iter::from_fn(|| session.poll_event()).collect()
}

fn say(session: &mut Session, text: &str, now_ns: u64) -> Vec<Payload> {
    session.handle_payload(&text.into(), now_ns);
    sent(session)
}

fn texts(texts: &[&str]) -> Vec<Payload> {
    texts.iter().map(|&text| text.into()).collect()
}

fn connected() -> Event {
    Event::Connected { sid: SOCKET_SID.to_owned() }
}

fn closed(reason: impl Into<CloseReason>) -> Vec<Event> {
    vec![Event::Closed(reason.into())]
}

fn server(carrier: Carrier) -> Session {
    Session::server(carrier, handshake(), SOCKET_SID.to_owned(), 0).unwrap()
}

fn connected_client(carrier: Carrier) -> Session {
    let mut client = Session::client(carrier, 0);
    say(&mut client, OPEN, 0);
    say(&mut client, CONNECTED, 0);
    assert_eq!(events(&mut client), [connected()]);
    client
}

fn connected_server() -> Session {
    let mut server = server(Carrier::WebSocket);
    say(&mut server, "40", 0);
    assert_eq!(events(&mut server), [connected()]);
    server
}

#[test]
fn a_client_talks_to_an_official_server() {
    let mut client = Session::client(Carrier::WebSocket, 0);
    assert_eq!(sent(&mut client), []);
    assert_eq!(say(&mut client, OPEN, ms(1)), texts(&["40"]));
    assert_eq!(client.emit("echo", "a".into()), Err(Error::NotNow { step: "connecting" }));
    assert_eq!(say(&mut client, CONNECTED, ms(2)), []);
    assert_eq!(events(&mut client), [connected()]);

    client.emit("echo", "a".into()).unwrap();
    client.emit("echo", binary(&[1, 2, 3])).unwrap();
    let echo = [Payload::from(r#"42["echo","a"]"#), BINARY_EVENT.into(), binary(&[1, 2, 3])];
    assert_eq!(sent(&mut client), echo);
    for payload in &echo {
        client.handle_payload(payload, ms(3));
    }
    let echoed = |argument| Event::Message { name: "echo".to_owned(), argument };
    assert_eq!(events(&mut client), [echoed("a".into()), echoed(binary(&[1, 2, 3]))]);

    assert_eq!(say(&mut client, "2", ms(301)), texts(&["3"]));
    client.close();
    assert_eq!(sent(&mut client), texts(&["41"]));
    assert_eq!(events(&mut client), closed(CloseReason::Local));
    assert_eq!((say(&mut client, "2", ms(302)), client.next_wakeup()), (vec![], None));
}

#[test]
fn a_server_talks_to_an_official_client() {
    let mut server = server(Carrier::WebSocket);
    assert_eq!(sent(&mut server), texts(&[OPEN]));
    assert_eq!(say(&mut server, "40", ms(1)), texts(&[CONNECTED]));
    assert_eq!(events(&mut server), [connected()]);
    assert_eq!(say(&mut server, "40/admin,", ms(2)), texts(&[r#"44/admin,{"message":"Invalid namespace"}"#])); // official
    server.handle_payload(&BINARY_EVENT.into(), ms(3));
    server.handle_payload(&binary(&[5]), ms(3));
    assert_eq!(events(&mut server), [Event::Message { name: "echo".to_owned(), argument: binary(&[5]) }]);
    server.emit("echo", "b".into()).unwrap();
    assert_eq!(sent(&mut server), texts(&[r#"42["echo","b"]"#]));
    assert_eq!(say(&mut server, "41", ms(4)), []);
    assert_eq!(events(&mut server), closed(CloseReason::Disconnected));
}

#[test]
fn on_webtransport_the_client_speaks_first() {
    let mut client = Session::client(Carrier::WebTransport, 0);
    let mut server = server(Carrier::WebTransport);
    assert_eq!(sent(&mut server), []);
    assert_eq!(sent(&mut client), texts(&["0"]));
    assert_eq!(say(&mut server, "0", ms(1)), texts(&[OPEN]));
    assert_eq!(say(&mut client, OPEN, ms(2)), texts(&["40"]));
    assert_eq!(client.handshake(), server.handshake());
    assert_eq!(say(&mut server, "40", ms(3)), texts(&[CONNECTED]));
    assert_eq!(client.emit("e", binary(&[])), Err(Error::NotNow { step: "connecting" }));
    say(&mut client, CONNECTED, ms(4));
    assert_eq!(client.emit("e", binary(&[])), Err(Error::EmptyFrame));
    assert_eq!(sent(&mut client), [], "not even the text that announces it");
}

#[test]
fn an_upgrade_over_webtransport() {
    let mut client = Session::client_upgrading(Carrier::WebTransport, handshake(), Joined::No, 0).unwrap();
    let socket_sid = SOCKET_SID.to_owned();
    let mut server = Session::server_upgrading(Carrier::WebTransport, handshake(), socket_sid, false, 0).unwrap();
    assert_eq!(sent(&mut client), texts(&[RESUME, "2probe"]));
    assert_eq!(say(&mut server, RESUME, ms(1)), []);
    assert_eq!(say(&mut server, "2probe", ms(1)), texts(&["3probe"]));
    assert_eq!(client.finish_upgrade(ms(2)), Err(Error::NotNow { step: "probing" }));
    assert_eq!(say(&mut client, "3probe", ms(2)), []);
    assert_eq!(events(&mut client), [Event::Probed]);
    client.finish_upgrade(ms(3)).unwrap();
    assert_eq!(client.finish_upgrade(ms(3)), Err(Error::NotNow { step: "connecting" }));
    assert_eq!(sent(&mut client), texts(&["5", "40"]));
    assert_eq!(say(&mut server, "5", ms(4)), []);
    assert_eq!(server.next_wakeup(), Some(ms(304)), "pings begin with the upgrade");
    assert_eq!(say(&mut server, "40", ms(4)), texts(&[CONNECTED]));
}

#[test]
fn an_upgrade_of_a_session_that_has_joined() {
    let upgrade = |joined| {
        let mut client = Session::client_upgrading(Carrier::WebSocket, handshake(), joined, 0).unwrap();
        assert_eq!(sent(&mut client), texts(&["2probe"]));
        say(&mut client, "3probe", ms(1));
        client.finish_upgrade(ms(1)).unwrap();
        assert_eq!(sent(&mut client), texts(&["5"]));
        client
    };
    assert_eq!(events(&mut upgrade(Joined::As(SOCKET_SID.to_owned()))), [Event::Probed, connected()]);
    let mut asked = upgrade(Joined::Asked);
    say(&mut asked, CONNECTED, ms(2));
    assert_eq!(events(&mut asked), [Event::Probed, connected()]);

    let socket_sid = SOCKET_SID.to_owned();
    let mut server = Session::server_upgrading(Carrier::WebSocket, handshake(), socket_sid, true, 0).unwrap();
    assert_eq!(say(&mut server, "2probe", ms(1)), texts(&["3probe"]));
    say(&mut server, "5", ms(2));
    say(&mut server, "3", ms(3)); // answers a ping sent while polling
    assert_eq!(events(&mut server), [connected()]);
    assert_eq!(server.next_wakeup(), Some(ms(303)));
}

#[test]
fn what_was_polled_comes_before_what_the_new_transport_brings() {
    for carrier in [Carrier::WebSocket, Carrier::WebTransport] {
        let joined = Joined::As(SOCKET_SID.to_owned());
        let mut client = Session::client_upgrading(carrier, handshake(), joined, 0).unwrap();
        sent(&mut client);
        say(&mut client, "3probe", ms(1));
        client.finish_upgrade(ms(2)).unwrap();
        for polled in ["2", r#"42["echo","a"]"#, BINARY_EVENT] {
            client.handle_payload(&polled.into(), ms(2));
        }
        assert_eq!(sent(&mut client), texts(&["5", "3"]));
        client.handle_payload(&binary(&[1]), ms(3));
        client.handle_payload(&r#"42["echo","b"]"#.into(), ms(3));
        let message = |argument| Event::Message { name: "echo".to_owned(), argument };
        let messages = ["a".into(), binary(&[1]), "b".into()].map(message);
        assert_eq!(events(&mut client), [[Event::Probed, connected()].as_slice(), messages.as_slice()].concat());
        assert_eq!(client.next_wakeup(), Some(ms(502)), "a ping counts, however it came");
    }
}

#[test]
fn a_session_is_not_mistaken_for_another() {
    let resume = |server: Session, first| {
        let mut server = server;
        say(&mut server, first, 0);
        assert_eq!(events(&mut server), closed(Error::WrongSession));
    };
    let upgrading = || Session::server_upgrading(Carrier::WebTransport, handshake(), String::new(), false, 0).unwrap();
    resume(upgrading(), "0");
    resume(upgrading(), r#"0{"sid":"another"}"#);
    resume(server(Carrier::WebTransport), RESUME);
}

#[test]
fn a_server_pings_after_the_interval_and_gives_up_after_the_timeout() {
    let mut server = connected_server();
    sent(&mut server);
    assert_eq!(server.next_wakeup(), Some(ms(300)));
    server.handle_wakeup(ms(300) - 1);
    assert_eq!(sent(&mut server), []);
    server.handle_wakeup(ms(300));
    assert_eq!(sent(&mut server), texts(&["2"]));
    assert_eq!(server.next_wakeup(), Some(ms(500)));
    say(&mut server, "3", ms(310));
    assert_eq!(server.next_wakeup(), Some(ms(610)), "from the pong, as the original does");
    server.handle_wakeup(ms(610));
    server.handle_wakeup(ms(810) - 1);
    assert_eq!(events(&mut server), []);
    server.handle_wakeup(ms(810));
    assert_eq!(events(&mut server), closed(CloseReason::PingTimeout));
    assert_eq!(server.next_wakeup(), None);
}

#[test]
fn a_client_gives_up_when_no_ping_comes() {
    let mut client = connected_client(Carrier::WebSocket);
    assert_eq!(client.next_wakeup(), Some(ms(500)));
    say(&mut client, "2", ms(400));
    assert_eq!(client.next_wakeup(), Some(ms(900)));
    client.handle_wakeup(ms(900));
    assert_eq!(events(&mut client), closed(CloseReason::PingTimeout));
}

#[test]
fn connecting_has_a_limit() {
    let mut client = Session::client(Carrier::WebTransport, 7);
    assert_eq!(client.next_wakeup(), Some(7 + CLIENT_CONNECT_TIMEOUT_NS));
    client.handle_wakeup(7 + CLIENT_CONNECT_TIMEOUT_NS);
    assert_eq!(events(&mut client), closed(CloseReason::ConnectTimeout));
    let mut server = server(Carrier::WebTransport);
    assert_eq!(server.next_wakeup(), Some(SERVER_CONNECT_TIMEOUT_NS));
    server.handle_wakeup(SERVER_CONNECT_TIMEOUT_NS);
    assert_eq!(events(&mut server), closed(CloseReason::ConnectTimeout));
}

#[test]
fn a_refused_client_learns_why() {
    for (refusal, said) in [(r#"44{"message":"no"}"#, "no"), (r#"44"no""#, "no"), (r#"44{"code":1}"#, r#"{"code":1}"#)]
    {
        let mut client = Session::client(Carrier::WebSocket, 0);
        say(&mut client, OPEN, 0);
        say(&mut client, refusal, 0);
        assert_eq!(events(&mut client), closed(CloseReason::Refused(said.to_owned())));
    }
}

#[test]
fn a_client_respects_the_servers_maximum() {
    let mut client = connected_client(Carrier::WebSocket);
    sent(&mut client);
    client.emit("e", Payload::Binary(vec![0; 1_000_000].into())).unwrap();
    let error = client.emit("e", Payload::Binary(vec![0; 1_000_001].into()));
    assert_eq!(error, Err(Error::PayloadTooLong { length_bytes: 1_000_001, max_bytes: 1_000_000 }));
    assert_eq!(client.emit("connect", "a".into()), Err(Error::EventName));
    assert_eq!(sent(&mut client).len(), 2);
}

#[test]
fn nonsense_ends_a_session() {
    let packet = |packet, step| CloseReason::from(Error::UnexpectedPacket { packet, step });
    let message = |message, step| CloseReason::from(Error::UnexpectedMessage { message, step });
    let against = |mut session: Session, text: &str, reason: CloseReason| {
        say(&mut session, text, 0);
        assert_eq!(events(&mut session), closed(reason), "{text}");
    };
    let client = || connected_client(Carrier::WebSocket);
    against(client(), "3", packet('3', "connected"));
    against(client(), "5", packet('5', "connected"));
    against(client(), OPEN, packet('0', "connected"));
    against(client(), "1", CloseReason::PeerClosed);
    against(client(), "9", Error::PacketType('9').into());
    against(client(), CONNECTED, message(MessageKind::Connect, "connected"));
    against(client(), r#"42["e",1]"#, Error::Arguments.into());
    against(client(), r#"42/other,["e","a"]"#, Error::Namespace.into());
    against(client(), r#"431["a"]"#, message(MessageKind::Ack, "connected"));
    against(Session::client(Carrier::WebSocket, 0), "40", packet('4', "opening"));
    against(connected_server(), "2", packet('2', "connected"));
    against(connected_server(), "40", message(MessageKind::Connect, "connected"));
    against(server(Carrier::WebSocket), r#"42["e","a"]"#, message(MessageKind::Event, "connecting"));

    let mut session = client();
    session.handle_payload(&binary(&[1]), 0);
    session.handle_transport_closed();
    assert_eq!(events(&mut session), closed(Error::UnannouncedBinary), "the first reason stands");
    assert!(
        Session::server(Carrier::WebSocket, Handshake { ping_interval_ms: 0, ..handshake() }, String::new(), 0)
            .is_err()
    );
}
