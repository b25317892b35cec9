//! What the ledger costs the real-time thread: `cargo bench -p crosswind-ledger`. Prints figures, judges nothing.

fn main() {}
