//! A client and a server of a test on a path.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crosswind_test::Path;

/// Answers every line with itself.
fn echo(address: SocketAddr) {
    for connection in TcpListener::bind(address).unwrap().incoming() {
        let mut connection = connection.unwrap();
        for line in BufReader::new(connection.try_clone().unwrap()).lines() {
            // In one piece, or Nagle's algorithm would hold the end of the line back.
            connection.write_all(format!("{}\n", line.unwrap()).as_bytes()).unwrap();
        }
    }
}

/// Sends lines one after another. Returns how long each answer took.
fn ask(address: SocketAddr) -> Vec<Duration> {
    let mut connection = TcpStream::connect(address).unwrap();
    let mut answers = BufReader::new(connection.try_clone().unwrap()).lines();
    let once = |_| {
        let begun = Instant::now();
        writeln!(connection, "hello").unwrap();
        assert_eq!(answers.next().unwrap().unwrap(), "hello");
        begun.elapsed()
    };
    (0..20).map(once).collect()
}

#[test]
fn answers_take_one_round_trip() {
    let result = Path::new().delay("20ms").repetitions(6).fail_if("median(client_time) > 41ms").run(echo, ask);
    // A handshake and twenty answers.
    assert_eq!(result.times()[0].as_millis(), 840);
    assert!(result.drops().is_empty());
}

#[test]
fn nothing_is_lost_for_good() {
    let result = Path::new().network("4g").loss("10%").run(echo, ask);
    assert!(result.drops()["loss"] > 0);
}

#[test]
fn a_failure_on_the_path_fails_the_client() {
    let result = Path::new().delay("20ms").unchecked().run(echo, |address| panic!("complains of {address}"));
    assert_eq!(result.status(), 101);
    assert!(result.output().contains("complains of"));
}
