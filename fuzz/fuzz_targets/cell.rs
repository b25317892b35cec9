//! Cells from any bytes: each is checked, or refused with a hint, and survives a round trip through JSON.

#![no_main]

use crosswind_cell::{Cell, check_cells};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Cell::from_json(text) {
        Ok(cell) => {
            let filled_in = serde_json::to_string(&cell).expect("a cell that was read can be written");
            assert_eq!(Cell::from_json(&filled_in).expect("and read again"), cell);
        }
        Err(error) => {
            assert_eq!(error.exit_status(), 2);
            assert!(!error.message.is_empty() && error.hint.is_some());
        }
    }
    let mut answers = Vec::new();
    match check_cells(text, &mut answers) {
        Ok(_) => assert!(answers.ends_with(b"\n")),
        Err(error) => assert_eq!(error.exit_status(), 2),
    }
});
