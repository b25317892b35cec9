//! QUIC packet keys from TLS secrets: RFC 9001, section 5, and RFC 9369 for version 2.

use crate::header::Version;
use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use ring::hkdf;
use std::ops::Range;

/// Salts for Initial secrets (RFC 9001, section 5.2; RFC 9369, section 3.3.1).
const SALT_1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f,
    0x0a,
];
const SALT_2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e,
    0xd9,
];
const IV_BYTES: usize = 12;
/// Of the cipher's output where the packet number may be at most, so much is the sample (RFC 9001, section 5.4.2).
const SAMPLE_BYTES: usize = 16;
const LONGEST_NUMBER: usize = 4;
const LONG_HEADER: u8 = 0x80;
const KEY_PHASE: u8 = 0x04;
/// The longest secret in bytes; no key is longer.
const MOST_BYTES: usize = 48;

/// A cipher suite. A secret's length tells the hash alone.
#[derive(Clone, Copy)]
pub struct Suite {
    hash: hkdf::Algorithm,
    packet: &'static aead::Algorithm,
    header: &'static quic::Algorithm,
}

impl Suite {
    fn of_initial() -> Self {
        Self { hash: hkdf::HKDF_SHA256, packet: &aead::AES_128_GCM, header: &quic::AES_128 }
    }

    /// The possible suites for a secret with so many bytes.
    pub fn of_secret(bytes: usize) -> Vec<Self> {
        match bytes {
            32 => vec![
                Self::of_initial(),
                Self { hash: hkdf::HKDF_SHA256, packet: &aead::CHACHA20_POLY1305, header: &quic::CHACHA20 },
            ],
            48 => vec![Self { hash: hkdf::HKDF_SHA384, packet: &aead::AES_256_GCM, header: &quic::AES_256 }],
            _ => Vec::new(),
        }
    }
}

/// Decrypts one sender's packets in one packet number space.
pub struct Keys {
    suite: Suite,
    version: Version,
    header: quic::HeaderProtectionKey,
    secret: Box<[u8]>,
    now: PacketKey,
    before: Option<PacketKey>,
    phase: bool,
}

/// One key's cipher and IV.
pub struct PacketKey {
    key: LessSafeKey,
    iv: [u8; IV_BYTES],
}

/// An opened packet.
pub struct Packet {
    pub number: u64,
    /// The frames in the opened bytes.
    pub frames: Range<usize>,
}

impl Keys {
    pub fn new(suite: Suite, version: Version, secret: &[u8]) -> Option<Self> {
        let prk = hkdf::Prk::new_less_safe(suite.hash, secret);
        let mut key = [0; MOST_BYTES];
        let key = &mut key[..suite.header.key_len()];
        expand(&prk, version.label("hp"), key)?;
        let header = quic::HeaderProtectionKey::new(suite.header, key).ok()?;
        let now = PacketKey::new(suite, version.packet_labels(), &prk)?;
        Some(Self { suite, version, header, secret: secret.into(), now, before: None, phase: false })
    }

    /// The client's and the server's Initial keys, which are public. `id`: the client's first destination connection
    /// ID.
    pub fn initial(version: Version, id: &[u8]) -> Option<[Self; 2]> {
        let salt = match version {
            Version::One => SALT_1,
            Version::Two => SALT_2,
        };
        let suite = Suite::of_initial();
        let initial = hkdf::Salt::new(suite.hash, &salt).extract(id);
        let of = |label| {
            let mut secret = [0; 32];
            expand(&initial, label, &mut secret)?;
            Self::new(suite, version, &secret)
        };
        Some([of("client in")?, of("server in")?])
    }

    /// Opens a copy of a packet in `space`. `number_at`: the packet number's offset. `next`: a nearby packet number.
    pub fn open(&mut self, packet: &[u8], number_at: usize, next: u64, space: &mut Vec<u8>) -> Option<Packet> {
        space.clear();
        space.extend_from_slice(packet);
        let sample_at = number_at.checked_add(LONGEST_NUMBER)?;
        let mask = self.header.new_mask(packet.get(sample_at..sample_at.checked_add(SAMPLE_BYTES)?)?).ok()?;
        let is_long = packet.first()? & LONG_HEADER != 0;
        space[0] ^= mask[0] & if is_long { 0x0f } else { 0x1f };
        let length = usize::from(space[0] & 3) + 1;
        let mut truncated = 0;
        for (byte, mask) in space[number_at..number_at + length].iter_mut().zip(&mask[1..]) {
            *byte ^= mask;
            truncated = truncated << 8 | u64::from(*byte);
        }
        let number = whole_number(truncated, length, next)?;
        let frames_at = number_at + length;
        let phase = !is_long && space[0] & KEY_PHASE != 0;
        if phase == self.phase {
            return self.now.open(number, frames_at, space);
        }
        // Newer than the present keys (RFC 9001, section 6), or older. A failure leaves nothing in `space`.
        let (secret, next) = self.next()?;
        if let Some(packet) = next.open(number, frames_at, space) {
            self.before = Some(std::mem::replace(&mut self.now, next));
            (self.secret, self.phase) = (secret, phase);
            return Some(packet);
        }
        let unprotected: Vec<u8> = space[..frames_at].into();
        space.clear();
        space.extend_from_slice(&unprotected);
        space.extend_from_slice(&packet[frames_at..]);
        self.before.as_ref()?.open(number, frames_at, space)
    }

    /// The next key phase's secret and key.
    fn next(&self) -> Option<(Box<[u8]>, PacketKey)> {
        let mut secret = [0; MOST_BYTES];
        let secret = &mut secret[..self.secret.len()];
        expand(&hkdf::Prk::new_less_safe(self.suite.hash, &self.secret), self.version.label("ku"), secret)?;
        let prk = hkdf::Prk::new_less_safe(self.suite.hash, secret);
        let key = PacketKey::new(self.suite, self.version.packet_labels(), &prk)?;
        Some(((&*secret).into(), key))
    }
}

impl PacketKey {
    /// A TLS 1.3 sender's (RFC 8446, section 7.3).
    pub fn of_records(suite: Suite, secret: &[u8]) -> Option<Self> {
        Self::new(suite, ["key", "iv"], &hkdf::Prk::new_less_safe(suite.hash, secret))
    }

    fn new(suite: Suite, [of_key, of_iv]: [&str; 2], secret: &hkdf::Prk) -> Option<Self> {
        let (mut key, mut iv) = ([0; MOST_BYTES], [0; IV_BYTES]);
        let key = &mut key[..suite.packet.key_len()];
        expand(secret, of_key, key)?;
        expand(secret, of_iv, &mut iv)?;
        Some(Self { key: LessSafeKey::new(UnboundKey::new(suite.packet, key).ok()?), iv })
    }

    /// Opens the payload behind the header in `space`; on failure the bytes are unusable.
    pub fn open(&self, number: u64, frames_at: usize, space: &mut [u8]) -> Option<Packet> {
        let mut nonce = self.iv;
        for (byte, of_number) in nonce[IV_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= of_number;
        }
        let (header, sealed) = space.split_at_mut_checked(frames_at)?;
        let opened = self.key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(&*header), sealed).ok()?;
        Some(Packet { number, frames: frames_at..frames_at + opened.len() })
    }
}

/// Decodes a truncated packet number as the nearest to `next` (RFC 9000, appendix A.3).
fn whole_number(truncated: u64, length: usize, next: u64) -> Option<u64> {
    const MOST: u64 = 1 << 62;
    let window = 1_u64 << (8 * length);
    let candidate = (next & !(window - 1)) | truncated;
    if candidate + window / 2 <= next && candidate < MOST - window {
        Some(candidate + window)
    } else if candidate > next + window / 2 && candidate >= window {
        Some(candidate - window)
    } else {
        Some(candidate).filter(|&number| number < MOST)
    }
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label (RFC 8446, section 7.1), without a context.
fn expand(secret: &hkdf::Prk, label: &str, out: &mut [u8]) -> Option<()> {
    const PREFIX: &str = "tls13 ";
    let (bytes, length) = ((out.len() as u16).to_be_bytes(), [(PREFIX.len() + label.len()) as u8]);
    let info: [&[u8]; 5] = [&bytes, &length, PREFIX.as_bytes(), label.as_bytes(), &[0]];
    secret.expand(&info, Length(out.len())).ok()?.fill(out).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.chars().filter_map(|it| it.to_digit(16)).map(|it| it as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// RFC 9001, appendix A.5.
    const SECRET: &str = "9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b";
    const PACKET: &str = "4cfe4189655e5cd55c41f69080575d7999c25a5bfb";

    #[test]
    fn the_chacha20_packet_of_rfc_9001_is_a_ping() {
        let (secret, packet) = (bytes(SECRET), bytes(PACKET));
        let opens = |suite: Suite, packet: &[u8], next| {
            let mut space = Vec::new();
            let opened = Keys::new(suite, Version::One, &secret)?.open(packet, 1, next, &mut space)?;
            Some((opened.number, space[opened.frames].to_vec()))
        };
        let [aes, chacha] = Suite::of_secret(secret.len()).try_into().map_err(|_| "two suites").unwrap();
        assert_eq!(opens(chacha, &packet, 654_360_564), Some((654_360_564, vec![1])));
        assert_eq!(opens(chacha, &packet, 654_360_564 + (1 << 24)), None);
        assert_eq!(opens(aes, &packet, 654_360_564), None);
        for end in 0..packet.len() {
            assert_eq!(opens(chacha, &packet[..end], 654_360_564), None);
        }
    }

    #[test]
    fn keys_follow_key_updates_and_open_what_was_sent_before() {
        // RFC 9001, appendix A.5 has the next phase's secret.
        let suite = Suite::of_secret(32)[1];
        let mut keys = Keys::new(suite, Version::One, &bytes(SECRET)).unwrap();
        let (secret, _) = keys.next().unwrap();
        assert_eq!(*secret, bytes("1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9"));
        let sealed = |keys: &Keys, number: u64, phase: u8| {
            let mut header = vec![0x40 | phase << 2 | 1];
            header.extend((number as u16).to_be_bytes());
            let mut nonce = keys.now.iv;
            for (byte, of_number) in nonce[IV_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
                *byte ^= of_number;
            }
            let mut frames = vec![1; 4];
            let nonce = Nonce::assume_unique_for_key(nonce);
            keys.now.key.seal_in_place_append_tag(nonce, Aad::from(&header), &mut frames).unwrap();
            let sample_at = LONGEST_NUMBER - 2;
            let mask = keys.header.new_mask(&frames[sample_at..sample_at + SAMPLE_BYTES]).unwrap();
            header[0] ^= mask[0] & 0x1f;
            header[1..].iter_mut().zip(&mask[1..]).for_each(|(byte, mask)| *byte ^= mask);
            [header, frames].concat()
        };
        let old = Keys::new(suite, Version::One, &bytes(SECRET)).unwrap();
        let (before, late) = (sealed(&old, 7, 0), sealed(&old, 9, 0));
        let newer = Keys { secret: secret.clone(), ..Keys::new(suite, Version::One, &secret).unwrap() };
        // An update leaves the header key as it is.
        let newer = Keys { header: Keys::new(suite, Version::One, &bytes(SECRET)).unwrap().header, ..newer };
        let after = sealed(&newer, 8, 1);
        let mut space = Vec::new();
        for (packet, number) in [(&before, 7), (&after, 8), (&late, 9), (&after, 8)] {
            assert_eq!(keys.open(packet, 1, 8, &mut space).map(|it| it.number), Some(number));
        }
    }

    #[test]
    fn a_packet_number_is_the_one_nearest_to_the_next() {
        // RFC 9000, appendix A.3.
        assert_eq!(whole_number(0x9b32, 2, 0xa82f_30eb), Some(0xa82f_9b32));
        assert_eq!(whole_number(0x01, 1, 0xff), Some(0x101));
        assert_eq!(whole_number(0xff, 1, 0x101), Some(0xff));
        assert_eq!(whole_number(0, 1, 0), Some(0));
        assert_eq!(whole_number(0xffff_ffff, 4, 0), Some(0xffff_ffff));
        assert_eq!(whole_number(0, 4, (1 << 62) - 1), Some((1 << 62) - (1 << 32)));
    }
}
