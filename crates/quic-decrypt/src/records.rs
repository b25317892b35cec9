//! Opens one sender's TLS 1.3 records (RFC 8446, section 5.2), for data after the handshake. After a `KeyUpdate`, and
//! with early data, it opens nothing more.

use crate::keys::{PacketKey, Suite};
use std::ops::Range;

const HEADER: usize = 5;
const APPLICATION_DATA: u8 = 23;
/// Other records: `ChangeCipherSpec`, alerts and handshakes in the clear.
const UNPROTECTED: Range<u8> = 20..APPLICATION_DATA;
const LONGEST: usize = (1 << 14) + 256;

pub struct Records<'k> {
    /// Secrets for the next keys.
    secrets: std::array::IntoIter<&'k [u8], 2>,
    /// The present key, or several until one has opened a record.
    keys: Vec<PacketKey>,
    /// The next record's number.
    number: u64,
    /// The present record, as far as read.
    record: Vec<u8>,
    /// Bytes read.
    position: u64,
    is_over: bool,
    /// Where records are opened.
    space: Vec<u8>,
}

impl<'k> Records<'k> {
    /// `secrets`: the sender's handshake and data traffic secrets.
    pub fn new(secrets: [&'k [u8]; 2]) -> Self {
        Self {
            secrets: secrets.into_iter(),
            keys: Vec::new(),
            number: 0,
            record: Vec::new(),
            position: 0,
            is_over: false,
            space: Vec::new(),
        }
    }

    /// Reads the next bytes. Calls `each` with a record's place and its data.
    pub fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(Range<u64>, &[u8])) {
        while !bytes.is_empty() && !self.is_over {
            let missing = self.size() - self.record.len();
            let (read, rest) = bytes.split_at(missing.min(bytes.len()));
            self.record.extend_from_slice(read);
            self.position += read.len() as u64;
            bytes = rest;
            if self.size() > HEADER + LONGEST {
                self.is_over = true;
            } else if self.record.len() == self.size() {
                let place = self.position - self.record.len() as u64..self.position;
                match self.data() {
                    Some(data) => each(place, data),
                    None => self.is_over = true,
                }
                self.record.clear();
            }
        }
    }

    /// The present record's size, as far as its header is known.
    fn size(&self) -> usize {
        match *self.record {
            [_, _, _, a, b, ..] => HEADER + usize::from(u16::from_be_bytes([a, b])),
            _ => HEADER,
        }
    }

    /// The present record's data: empty in other records, `None` if nothing opens it.
    fn data(&mut self) -> Option<&[u8]> {
        let kind = *self.record.first()?;
        if UNPROTECTED.contains(&kind) {
            return Some(&[]);
        }
        let content = self.open().filter(|_| kind == APPLICATION_DATA)?;
        // Padding is behind the type.
        let content = self.space.get(content)?;
        let (&kind, data) = content[..=content.iter().rposition(|&byte| byte != 0)?].split_last()?;
        Some(if kind == APPLICATION_DATA { data } else { &[] })
    }

    /// Opens the present record in `space`.
    fn open(&mut self) -> Option<Range<usize>> {
        loop {
            for at in 0..self.keys.len() {
                self.space.clear();
                self.space.extend_from_slice(&self.record);
                if let Some(opened) = self.keys[at].open(self.number, HEADER, &mut self.space) {
                    self.keys.swap(0, at);
                    self.keys.truncate(1);
                    self.number += 1;
                    return Some(opened.frames);
                }
            }
            let secret = self.secrets.next()?;
            let suites = Suite::of_secret(secret.len()).into_iter();
            self.keys = suites.filter_map(|suite| PacketKey::of_records(suite, secret)).collect();
            self.number = 0;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 8448, section 3: each end's bytes, and its handshake and data secrets.
    const CLIENT: &str = include_str!("../tests/rfc8448/client.hex");
    const SERVER: &str = include_str!("../tests/rfc8448/server.hex");
    const CLIENT_SECRETS: [&str; 2] = [
        "b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21",
        "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5",
    ];
    const SERVER_SECRETS: [&str; 2] = [
        "b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38",
        "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643",
    ];

    /// A record's place and data.
    type Placed = (Range<u64>, Vec<u8>);

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|it| it.to_digit(16)).map(|it| it as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// The data of records, read in pieces of `size` bytes, and whether reading ended early.
    fn opened(sent: &[u8], secrets: &[&str; 2], size: usize) -> (Vec<Placed>, bool) {
        let secrets = secrets.map(bytes);
        let mut records = Records::new(secrets.each_ref().map(Vec::as_slice));
        let mut all = Vec::new();
        for piece in sent.chunks(size) {
            records.read(piece, |place, data| all.push((place, data.to_vec())));
        }
        all.retain(|it| !it.1.is_empty());
        (all, records.is_over)
    }

    #[test]
    fn the_trace_of_rfc_8448_has_the_same_50_bytes_each_way() {
        let data: Vec<u8> = (0..50).collect();
        // Behind ClientHello and Finished; behind ServerHello, the encrypted flight and a ticket.
        let client_at = 5 + 196 + 58;
        let server_at = 95 + 679 + 227;
        for size in [1, 2, 7, 64, 10_000] {
            let client = opened(&bytes(CLIENT), &CLIENT_SECRETS, size);
            assert_eq!(client, (vec![(client_at..client_at + 72, data.clone())], false));
            let server = opened(&bytes(SERVER), &SERVER_SECRETS, size);
            assert_eq!(server, (vec![(server_at..server_at + 72, data.clone())], false));
        }
    }

    #[test]
    fn a_damaged_record_and_other_keys_end_it() {
        let mut damaged = bytes(SERVER);
        damaged[95 + 679 + 100] ^= 1;
        assert_eq!(opened(&damaged, &SERVER_SECRETS, 100), (Vec::new(), true));
        assert_eq!(opened(&bytes(SERVER), &CLIENT_SECRETS, 100), (Vec::new(), true));
        assert_eq!(opened(&[23, 3, 3, 255, 255], &SERVER_SECRETS, 100), (Vec::new(), true));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(
            sent in prop::collection::vec(any::<u8>(), 0..300), cut in 0_usize..1000, size in 1_usize..50,
        ) {
            let mut all = bytes(SERVER);
            all.truncate(cut);
            all.extend(&sent);
            let (data, _) = opened(&all, &SERVER_SECRETS, size);
            prop_assert_eq!(data, Vec::new());
        }
    }
}
