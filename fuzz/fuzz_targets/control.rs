//! The other machine's side of a control connection: the first byte chooses the cuts.

#![no_main]

use crosswind_cell::network::{FromClient, FromServer, Parts};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;

const LARGEST: usize = 4096;

fn parts_of(pieces: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let (mut parts, mut all) = (Parts::new(LARGEST), Vec::new());
    for piece in pieces {
        parts.handle_bytes(&piece);
        loop {
            match parts.poll_part() {
                Ok(Some(part)) => all.push(part),
                Ok(None) => break,
                Err(_) => return all,
            }
        }
    }
    all
}

fn check<T: Serialize + DeserializeOwned>(part: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(part) else { return };
    let written = serde_json::to_vec(&message).unwrap();
    let again: T = serde_json::from_slice(&written).unwrap();
    assert_eq!(serde_json::to_vec(&again).unwrap(), written);
}

fuzz_target!(|input: &[u8]| {
    let [cut, stream @ ..] = input else { return };
    let cut = usize::from(*cut).max(1);
    let whole = parts_of(std::iter::once(stream.to_vec()));
    assert_eq!(whole, parts_of(stream.chunks(cut).map(<[u8]>::to_vec)), "however it is cut, the same is read");
    for part in whole {
        assert!(part.len() <= LARGEST);
        check::<FromClient>(&part);
        check::<FromServer>(&part);
    }
});
