//! A key log and datagrams from any bytes, behind a valid first packet.

#![no_main]

use crosswind_path::Side;
use crosswind_quic_decrypt::{Datagram, KeyLog, Opener};
use libfuzzer_sys::fuzz_target;

/// RFC 9001, appendix A.2.
const FIRST: &str = include_str!("../../crates/quic-decrypt/tests/rfc9001/client_initial.hex");

fuzz_target!(|input: (&[u8], Vec<(bool, u8, &[u8])>)| {
    let (log, datagrams) = input;
    let keys = KeyLog::parse(log);
    assert!(keys.connections() <= log.len() / 64);
    let digits: Vec<u8> = FIRST.chars().filter_map(|it| it.to_digit(16)).map(|it| it as u8).collect();
    let first: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let mut opener = Opener::new(&keys, 1000);
    opener.add(Datagram { side: Side::Forward, client_port: 0, server_port: 443, payload: &first });
    for (forward, port, payload) in &datagrams {
        let side = if *forward { Side::Forward } else { Side::Reverse };
        opener.add(Datagram { side, client_port: u16::from(port % 2), server_port: 443, payload });
    }
    let opened = opener.finish();
    assert!(opened.connections >= 1 && opened.with_secrets <= opened.connections);
    for log in &opened.logs {
        for packet in log.packets() {
            assert!(log.frames(packet).len() <= usize::from(packet.size) + 2);
        }
    }
});
