//! Sockets, settings and logs.

use crate::{ALL, connect, directory, echo, open, outcome, qlog, settings, transport, twice, with_server};
use crosswind_transport::{Driver, Outcome, Settings, SocketSettings};
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn garbage_does_not_disturb_a_server() {
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let vandal = UdpSocket::bind("127.0.0.1:0").unwrap();
            // Every first byte, and so every packet type, with and without a supported version.
            for kind in 0..=u8::MAX {
                for (size, version) in [(1, 0), (21, 1), (1200, 1), (1200, 0x0a0a_0a0a), (65_000, 0)] {
                    let mut packet: Vec<u8> =
                        (0..size).map(|i: usize| (i.wrapping_mul(167) >> 2) as u8 ^ kind.rotate_left(3)).collect();
                    packet[0] = kind;
                    if let Some(place) = packet.get_mut(1..5) {
                        place.copy_from_slice(&u32::to_be_bytes(version));
                    }
                    vandal.send_to(&packet, server).unwrap();
                }
                tokio::task::yield_now().await;
            }
            let mut connection = connect(name, server, &settings).await;
            let mut stream = open(&*connection).await;
            echo(&mut stream, 1000).await.unwrap();
            connection.close().await.unwrap();
        });
    }
}

#[test]
fn settings_are_read_back() {
    for name in ALL {
        let socket = SocketSettings {
            congestion_control: Some("reno".into()),
            send_buffer: Some(50_000),
            receive_buffer: Some(60_000),
            ..SocketSettings::default()
        };
        let settings = Settings { socket: socket.clone(), ..settings() };
        with_server(name, &settings, async |server| {
            let connection = connect(name, server, &settings).await;
            let found = connection.readback().unwrap();
            assert_eq!(socket.mismatch(&found), None);
            assert_eq!((found.send_buffer_bytes, found.receive_buffer_bytes), (100_000, 120_000));
            assert_eq!(found.congestion_control.as_deref(), Some("reno"));
        });
        let unknown = SocketSettings { congestion_control: Some("vegas".into()), ..SocketSettings::default() };
        let settings = Settings { socket: unknown, ..settings.clone() };
        let run = transport(name).listen("127.0.0.1:0".parse().unwrap(), &settings);
        assert_eq!(outcome(Driver::Reactor.run(run).unwrap()), Outcome::Error);
    }
}

#[test]
fn a_closed_connection_gives_its_port_back() {
    for name in ALL {
        let settings = settings();
        with_server(name, &settings, async |server| {
            let mut ports = Vec::new();
            for n in 0..20 {
                let mut connection = connect(name, server, &settings).await;
                ports.push(connection.client_port());
                match n % 3 {
                    0 => connection.close().await.unwrap(),
                    1 => connection.abort(),
                    _ => {}
                }
            }
            for port in ports {
                // The endpoint forgets the connection after three probe timeouts (RFC 9000, section 10.2).
                while UdpSocket::bind(("0.0.0.0", port)).is_err() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        });
    }
}

#[test]
fn both_ends_write_a_qlog() {
    let directory = directory("both");
    let settings = Settings { qlog: Some(directory.clone()), ..settings() };
    twice("webtransport", &settings);
    for side in ["client", "server"] {
        let records = qlog(&directory.join(format!("{side}.qlog")));
        let (first, events) = records.split_first().unwrap();
        assert_eq!(first["qlog_format"], "JSON-SEQ");
        assert_eq!(first["title"], format!("crosswind {side}"));
        let named = |name: &str| events.iter().filter(|event| event["name"].as_str().unwrap().ends_with(name)).count();
        assert!(named("packet_sent") >= 10 && named("packet_received") >= 10, "{side}");
        let of_last = &events.last().unwrap()["group_id"];
        assert!(events.iter().filter(|event| &event["group_id"] == of_last).count() >= 20, "{side}");
        // Both connections are in it.
        let first = |event: &&serde_json::Value| {
            let header = &event["data"]["header"];
            event["name"] == "transport:packet_sent"
                && header["packet_type"] == "initial"
                && header["packet_number"] == 0
        };
        assert_eq!(events.iter().filter(first).count(), 2, "{side}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}
