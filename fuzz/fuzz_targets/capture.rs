//! Captures from any bytes: each is refused with a message, or has packets in order of time, with valid IP sizes.

#![no_main]

use crosswind_cell::recorded_packets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match recorded_packets(bytes) {
        Some(Ok(packets)) => {
            let times: Vec<f64> = packets.iter().step_by(2).copied().collect();
            assert!(packets.len().is_multiple_of(2) && times[0] == 0.0 && times.is_sorted());
            assert!(packets.iter().skip(1).step_by(2).all(|size| (1.0..=65_535.0).contains(size)));
        }
        Some(Err(problem)) => assert!(!problem.is_empty()),
        None => {}
    }
});
