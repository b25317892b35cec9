//! The frames of a QUIC packet from any bytes.

#![no_main]

use crosswind_ledger::{Frames, QuicFrame};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|payload: &[u8]| {
    let mut frames = Frames::new(payload);
    let all: Vec<QuicFrame> = frames.by_ref().collect();
    assert!(all.len() <= payload.len());
    assert!(frames.next().is_none());
    for frame in &all {
        let length = match *frame {
            QuicFrame::Stream { length, .. } | QuicFrame::Crypto { length, .. } | QuicFrame::Datagram { length } => length,
            _ => 0,
        };
        assert!(length as usize <= payload.len());
    }
    if frames.is_whole() {
        let mut again = Frames::new(payload);
        assert_eq!(again.by_ref().take(all.len() / 2).collect::<Vec<_>>(), all[..all.len() / 2]);
        assert_eq!(again.collect::<Vec<_>>(), all[all.len() / 2..]);
    }
});
