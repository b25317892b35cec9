//! Cells across the network: a server and its clients as two processes, on loopback addresses in place of machines.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a failure is a failed test

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const TOKEN: &str = "a token of twenty characters";

fn crosswind_cell(token: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosswind-cell"));
    command.env("CROSSWIND_TOKEN", token).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A server, ended with the test.
struct Host {
    process: Child,
    events: BufReader<ChildStdout>,
    address: SocketAddr,
    data_port: u16,
}

impl Host {
    fn start(limits: &Value) -> Self {
        let data_port = free_port();
        let wanted = json!({"address": "127.0.0.1:0", "data_port": data_port, "limits": limits}).to_string();
        let mut process = crosswind_cell(TOKEN).args(["--listen", &wanted]).spawn().unwrap();
        let mut events = BufReader::new(process.stdout.take().unwrap());
        let listening = next_line(&mut events);
        assert_eq!(listening["event"], "listening", "{listening}");
        let address = listening["address"].as_str().unwrap().parse().unwrap();
        Self { process, events, address, data_port }
    }

    fn next_event(&mut self) -> Value {
        next_line(&mut self.events)
    }

    /// A cell of `workload` for a client of this server.
    fn cell(&self, workload: &Value) -> Value {
        let path = json!({"backend": "network", "server": self.address.to_string()});
        json!({"schema": "crosswind.cell/1", "id": "one", "path": path, "workload": workload, "deadline_ns": 30_000_000_000_u64})
    }

    /// A client's last event.
    fn run(&self, workload: &Value) -> Value {
        Client::start(&self.cell(workload), TOKEN).last_event()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Client {
    process: Child,
    events: BufReader<ChildStdout>,
}

impl Client {
    fn start(cell: &Value, token: &str) -> Self {
        let mut process = crosswind_cell(token).spawn().unwrap();
        process.stdin.take().unwrap().write_all(cell.to_string().as_bytes()).unwrap();
        let events = BufReader::new(process.stdout.take().unwrap());
        Self { process, events }
    }

    fn wait_for(&mut self, event: &str) -> Value {
        loop {
            let next = next_line(&mut self.events);
            if next["event"] == event {
                return next;
            }
        }
    }

    fn last_event(mut self) -> Value {
        let last = (&mut self.events).lines().last().unwrap().unwrap();
        self.process.wait().unwrap();
        serde_json::from_str(&last).unwrap()
    }
}

fn next_line(reader: &mut impl BufRead) -> Value {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event, but {line:?}"))
}

/// A port free for TCP and UDP at this moment.
fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn echo(transport: &str, messages: u64) -> Value {
    json!({"kind": "echo", "transport": transport, "messages": messages, "size_bytes": 100})
}

/// An error's kind and message.
fn failure(event: &Value) -> (&str, &str) {
    assert_eq!(event["event"], "error", "{event}");
    assert!(event["hint"].is_string(), "{event}");
    (event["kind"].as_str().unwrap(), event["message"].as_str().unwrap())
}

#[test]
fn every_transport_echoes_and_is_counted_at_both_ends() {
    let mut host = Host::start(&json!({}));
    for transport in crosswind_transport::all() {
        let finished = host.run(&echo(transport.name(), 20));
        assert_eq!(finished["samples"], json!({"rows": 20, "ok": 20, "lost": 0, "outcomes": []}), "{finished}");
        assert_eq!(finished["valid"], true, "{finished}");
        assert_eq!((&finished["ledger"], &finished["fidelity"]), (&Value::Null, &Value::Null));
        let network = &finished["network"];
        assert_eq!(network["clocks"]["method"], "same kernel");
        let is_tcp = transport.features().carrier == crosswind_transport::Carrier::Tcp;
        assert_eq!(network["tcp"].is_object(), is_tcp, "{transport}: {network}");
        if is_tcp {
            let sent = |end: &str| network["tcp"][end]["segments_sent"].as_u64().unwrap();
            assert!(sent("client") >= 20 && sent("server") >= 20, "{transport}: {network}");
        }
        assert_eq!(host.next_event()["transport"], transport.name());
        let ended = host.next_event();
        assert_eq!((&ended["event"], &ended["outcome"]), (&json!("cell_ended"), &json!("done")));
        assert_eq!((&ended["received_bytes"], &ended["sent_bytes"]), (&json!(2000), &json!(2000)), "{transport}");
    }
}

#[test]
fn every_workload_finds_its_server() {
    let host = Host::start(&json!({}));
    let transfer =
        |direction| json!({"kind": "transfer", "transport": "tcp", "size_bytes": 300_000, "direction": direction});
    let timed = |direction| json!({"kind": "transfer", "transport": "http2", "duration_ns": 50_000_000, "direction": direction});
    for workload in [
        transfer("upload"),
        transfer("download"),
        timed("upload"),
        timed("download"),
        json!({"kind": "connect", "transport": "tls", "count": 3, "resumption": "session"}),
        json!({"kind": "multiplex", "transport": "quic"}),
        json!({"kind": "page", "transport": "http3", "count": 1}),
    ] {
        let finished = host.run(&workload);
        assert_eq!(finished["samples"]["lost"], 0, "{workload}: {finished}");
        assert!(finished["samples"]["ok"].as_u64().unwrap() > 0, "{workload}: {finished}");
    }
}

/// The number of packets in a pcapng file: its blocks of type 6.
fn packets_in(file: &Path) -> usize {
    let bytes = std::fs::read(file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut packets) = (0, 0);
    while at < bytes.len() {
        packets += usize::from(word(at) == 6);
        at += word(at + 4) as usize;
    }
    packets
}

#[test]
fn both_ends_capture_the_packets_of_the_cell() {
    let host = Host::start(&json!({}));
    let directory = std::env::temp_dir().join(format!("crosswind-network-test-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let mut cell = host.cell(&echo("udp", 20));
    cell["output"] = json!({"directory": directory, "capture": true});
    let last = Client::start(&cell, TOKEN).last_event();
    let packets = ["client.pcapng", "server.pcapng"].map(|name| directory.join(name));
    if nix::unistd::geteuid().is_root() {
        assert_eq!(last["samples"]["ok"], 20, "{last}");
        assert_eq!(last["warnings"], json!([]));
        // 20 messages, 20 answers, and the datagram that ends the server's own wait; on loopback every packet is seen
        // twice, when it is sent and when it is received.
        assert_eq!(packets.map(|file| packets_in(&file)), [82, 82]);
    } else {
        assert!(failure(&last).1.contains("cannot capture packets"), "{last}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_server_answers_its_client_alone() {
    let host = Host::start(&json!({}));
    let paced = json!({"kind": "echo", "transport": "tcp", "mode": "open", "rate_per_s": 10, "messages": 10});
    let mut client = Client::start(&host.cell(&paced), TOKEN);
    client.wait_for("progress");
    // Another address of the same machine is another machine to the server.
    let mut stranger = connection_from("127.0.0.2", SocketAddr::from(([127, 0, 0, 1], host.data_port)));
    stranger.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let _ = stranger.write_all(&[7; 100]);
    let answered = stranger.read(&mut [0; 100]);
    assert!(matches!(answered, Ok(0) | Err(_)), "{answered:?}");
    assert_eq!(client.last_event()["samples"]["ok"], 10);
}

#[test]
fn over_udp_the_server_answers_its_client_alone() {
    let host = Host::start(&json!({}));
    let paced = json!({"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 10, "messages": 10});
    let mut client = Client::start(&host.cell(&paced), TOKEN);
    client.wait_for("progress");
    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    stranger.send_to(&[7; 100], ("127.0.0.1", host.data_port)).unwrap();
    assert_eq!(client.last_event()["samples"]["ok"], 10);
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut [0; 100]).is_err());
}

#[test]
fn who_does_not_know_the_token_gets_nothing() {
    let mut host = Host::start(&json!({}));
    let other = Client::start(&host.cell(&echo("tcp", 1)), "another token of many characters").last_event();
    assert_eq!(failure(&other), ("network", format!("{}: the token is wrong", host.address).as_str()));
    let refused = host.next_event();
    assert_eq!((&refused["event"], &refused["reason"]), (&json!("refused"), &json!("the token is wrong")));
    let short = Client::start(&host.cell(&echo("tcp", 1)), "short").last_event();
    assert_eq!(failure(&short), ("network", "the token (CROSSWIND_TOKEN) is too short"));
    // A connection without TLS is refused too.
    let mut noise = TcpStream::connect(host.address).unwrap();
    noise.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(host.next_event()["event"], "refused");
    assert_eq!(host.run(&echo("tcp", 1))["event"], "finished");
}

/// A connection from one of this machine's addresses, in place of another machine.
fn connection_from(own: &str, server: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&format!("{own}:0").parse::<SocketAddr>().unwrap().into()).unwrap();
    socket.connect(&server.into()).unwrap();
    socket.into()
}

#[test]
fn strangers_neither_lock_a_client_out_nor_fill_the_log() {
    let mut host = Host::start(&json!({}));
    let idle: Vec<_> = ["127.0.0.2", "127.0.0.3", "127.0.0.1"]
        .iter()
        .flat_map(|own| (0..40).map(|_| connection_from(own, host.address)).collect::<Vec<_>>())
        .collect();
    assert_eq!(host.run(&echo("tcp", 1))["event"], "finished");
    for _ in 0..200 {
        drop(connection_from("127.0.0.2", host.address));
    }
    let mut refused = 0;
    let left_out = loop {
        let event = host.next_event();
        match event["event"].as_str().unwrap() {
            "refused" => refused += 1,
            "refused_more" => break event["count"].as_u64().unwrap(),
            _ => {}
        }
    };
    // Two lines for each address; open connections, at most eight of each, are not refused yet.
    assert!(refused <= 6 && left_out <= 320 - refused && left_out >= 320 - 24 - 6, "{refused}, {left_out}");
    drop(idle);
}

#[test]
fn what_is_no_server_of_crosswind_is_named() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let closing = std::thread::spawn(move || drop(other.accept().unwrap()));
    let path = json!({"backend": "network", "server": address.to_string()});
    let cell = json!({"schema": "crosswind.cell/1", "path": path, "workload": echo("tcp", 1)});
    let closed = Client::start(&cell, TOKEN).last_event();
    closing.join().unwrap();
    assert_eq!(failure(&closed).0, "network");
    assert!(failure(&closed).1.starts_with(&format!("{address} is no server of Crosswind")), "{closed}");
    let nobody = Client::start(&cell, TOKEN).last_event();
    assert_eq!(failure(&nobody), ("network", format!("cannot reach {address}: Connection refused").as_str()));
}

#[test]
fn a_server_that_is_killed_ends_the_cell() {
    let mut host = Host::start(&json!({}));
    let long = json!({"kind": "echo", "transport": "tcp", "mode": "open", "rate_per_s": 10, "messages": 1000});
    let mut client = Client::start(&host.cell(&long), TOKEN);
    client.wait_for("progress");
    host.process.kill().unwrap();
    let ended = client.last_event();
    assert_eq!(failure(&ended).0, "network");
    assert!(failure(&ended).1.starts_with(&format!("the connection to {} is lost", host.address)), "{ended}");
}

#[test]
fn a_client_that_is_killed_frees_the_server() {
    let mut host = Host::start(&json!({}));
    let long = json!({"kind": "echo", "transport": "quic", "mode": "open", "rate_per_s": 10, "messages": 1000});
    let mut client = Client::start(&host.cell(&long), TOKEN);
    client.wait_for("progress");
    client.process.kill().unwrap();
    client.process.wait().unwrap();
    assert_eq!(host.next_event()["event"], "cell_started");
    assert_eq!(host.next_event()["outcome"], "the client went away");
    assert_eq!(host.run(&echo("quic", 1))["event"], "finished");
}

#[test]
fn two_clients_take_turns() {
    let mut host = Host::start(&json!({}));
    let clients = [(); 2].map(|()| Client::start(&host.cell(&echo("tcp", 100)), TOKEN));
    for client in clients {
        assert_eq!(client.last_event()["samples"]["ok"], 100);
    }
    let order: Vec<_> = (0..4).map(|_| host.next_event()["event"].as_str().unwrap().to_owned()).collect();
    assert_eq!(order, ["cell_started", "cell_ended", "cell_started", "cell_ended"]);
}

#[test]
fn a_cell_takes_no_more_than_it_may() {
    let mut host = Host::start(&json!({"bytes": 100_000, "connections": 3, "seconds": 1.0}));
    let outcome = |host: &mut Host, workload: &Value| {
        let event = host.run(workload);
        let message = failure(&event).1.to_owned();
        assert_eq!(host.next_event()["event"], "cell_started");
        (message, host.next_event()["outcome"].as_str().unwrap().to_owned())
    };
    let ended = format!("{}: the server ended the cell: ", host.address);
    let large = json!({"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000});
    let words = "limit of bytes or connections";
    assert_eq!(outcome(&mut host, &large), (format!("{ended}{words}"), words.to_owned()));
    let many = json!({"kind": "echo", "transport": "tcp", "messages": 10, "connection": "new"});
    assert_eq!(outcome(&mut host, &many), (format!("{ended}{words}"), words.to_owned()));
    let long = json!({"kind": "echo", "transport": "tcp", "mode": "open", "rate_per_s": 10, "messages": 1000});
    assert_eq!(outcome(&mut host, &long), (format!("{ended}limit of 1 s"), "limit of 1 s".to_owned()));
    assert_eq!(host.run(&echo("tcp", 10))["event"], "finished");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let wanted = json!({"address": taken.local_addr().unwrap().to_string(), "data_port": free_port()}).to_string();
    let mut process = crosswind_cell(TOKEN).args(["--listen", &wanted]).spawn().unwrap();
    let mut text = String::new();
    process.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(1));
    let event: Value = serde_json::from_str(&text).unwrap();
    assert!(failure(&event).1.starts_with(&format!("cannot listen on {}", taken.local_addr().unwrap())), "{event}");
}

/// A client that sends messages on demand.
struct Watcher {
    process: Child,
    events: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(host: &Host, changes: &Value) -> Self {
        let mut wanted = json!({"server": host.address.to_string(), "transport": "udp"});
        wanted.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let mut process = crosswind_cell(TOKEN).args(["--watch", &wanted.to_string()]).spawn().unwrap();
        let events = BufReader::new(process.stdout.take().unwrap());
        Self { process, events }
    }

    fn next_event(&mut self) -> Value {
        next_line(&mut self.events)
    }

    fn tell(&mut self, numbers: &str) {
        self.process.stdin.as_mut().unwrap().write_all(numbers.as_bytes()).unwrap();
    }

    /// Sends a message, and returns its answer.
    fn exchange(&mut self, number: u64) -> Value {
        self.tell(&format!("{number}\n"));
        self.next_event()
    }

    /// Ends it, and returns its last event.
    fn end(mut self) -> Value {
        drop(self.process.stdin.take());
        let last = next_line(&mut self.events);
        assert!(self.process.wait().unwrap().success());
        last
    }
}

#[test]
fn a_watcher_gets_each_answer_with_what_the_server_has_counted() {
    let mut host = Host::start(&json!({}));
    for transport in crosswind_transport::all() {
        if transport.features().streams == crosswind_transport::Streams::PerMessage {
            continue;
        }
        let mut watcher = Watcher::start(&host, &json!({"transport": transport.name(), "size_bytes": 100}));
        let connected = watcher.next_event();
        assert_eq!(connected["event"], "connected", "{transport}: {connected}");
        for (counted, number) in [7, 3, 1 << 40].into_iter().enumerate() {
            let received = watcher.exchange(number);
            assert_eq!(
                (&received["event"], &received["number"], &received["counted"]),
                (&json!("received"), &json!(number), &json!(counted + 1)),
                "{transport}: {received}"
            );
            assert!(received["received_ns"].as_u64() > received["sent_ns"].as_u64(), "{transport}: {received}");
        }
        let ended = watcher.end();
        assert_eq!(ended["network"]["clocks"]["method"], "same kernel", "{transport}: {ended}");
        assert_eq!(host.next_event()["transport"], transport.name());
        let ended = host.next_event();
        assert_eq!((&ended["outcome"], &ended["received_bytes"]), (&json!("done"), &json!(300)), "{transport}");
    }
}

#[test]
fn messages_that_are_asked_for_at_once_are_sent_one_after_another() {
    let host = Host::start(&json!({}));
    for transport in ["udp", "quic"] {
        let mut watcher = Watcher::start(&host, &json!({"transport": transport}));
        assert_eq!(watcher.next_event()["event"], "connected");
        watcher.tell(&(0..20).fold(String::new(), |text, number| text + &format!("{number}\n")));
        let sent: Vec<u64> = (0..20).map(|_| watcher.next_event()["sent_ns"].as_u64().unwrap()).collect();
        assert!(sent.windows(2).all(|pair| pair[1] - pair[0] >= 500_000), "{transport}: {sent:?}");
        assert_eq!(watcher.end()["event"], "ended");
    }
}

#[test]
fn a_watcher_ends_with_its_server() {
    let mut host = Host::start(&json!({}));
    for transport in ["udp", "tcp", "quic"] {
        let mut watcher = Watcher::start(&host, &json!({"transport": transport}));
        watcher.next_event();
        assert_eq!(watcher.exchange(0)["event"], "received");
        host.process.kill().unwrap();
        let ended = watcher.next_event();
        assert_eq!(failure(&ended).0, "network", "{transport}: {ended}");
        assert_eq!(watcher.process.wait().unwrap().code(), Some(1));
        host = Host::start(&json!({}));
    }
}

#[test]
fn what_a_watcher_cannot_do_is_said() {
    let host = Host::start(&json!({}));
    for (changes, message) in [
        (json!({"transport": "http2"}), "http2 has no connection of messages that could be watched"),
        (json!({"size_bytes": 31}), "size_bytes is 31, and has to be from 32 to 1100"),
        (json!({"size_bytes": 1101}), "size_bytes is 1101, and has to be from 32 to 1100"),
        (json!({"seconds": 0}), "deadline_ns 0 is not between 1000000 and 86400000000000"),
    ] {
        let mut watcher = Watcher::start(&host, &changes);
        let event = watcher.next_event();
        assert_eq!(failure(&event), ("bad_cell", message));
        assert_eq!(watcher.process.wait().unwrap().code(), Some(2));
    }
}
