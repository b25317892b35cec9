//! The packet header parser on any bytes: it returns, keeps its promises, and agrees with etherparse.

#![no_main]

#[path = "../../crates/ledger/tests/support/oracle.rs"]
mod oracle;

use crosswind_ledger::Headers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packet: &[u8]| {
    let headers = Headers::parse(packet);
    assert!(headers.payload_bytes as usize <= packet.len());
    assert!(headers.flags == 0 || headers.protocol == 6);
    match headers.version {
        0 => assert_eq!(headers, Headers::default()),
        version => assert!(version == packet[0] >> 4 && matches!(version, 4 | 6)),
    }
    if let Some(expected) = oracle::oracle(packet) {
        assert_eq!(headers, expected);
    }
});
