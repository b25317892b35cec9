//! Unprotected parts of QUIC headers: RFC 9000, section 17, and RFC 9369.

/// A supported version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 9000.
    One,
    /// RFC 9369.
    Two,
}

impl Version {
    const fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::One),
            0x6b33_43cf => Some(Self::Two),
            _ => None,
        }
    }

    /// The labels of a packet's key and IV.
    pub fn packet_labels(self) -> [&'static str; 2] {
        [self.label("key"), self.label("iv")]
    }

    /// A key's label, ending in `what`.
    pub fn label(self, what: &'static str) -> &'static str {
        let of_version = |one, two| if self == Self::One { one } else { two };
        match what {
            "key" => of_version("quic key", "quicv2 key"),
            "iv" => of_version("quic iv", "quicv2 iv"),
            "hp" => of_version("quic hp", "quicv2 hp"),
            _ => of_version("quic ku", "quicv2 ku"),
        }
    }
}

/// A long-header packet's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    Initial,
    Early,
    Handshake,
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Long<'a> {
    pub version: Version,
    pub kind: PacketKind,
    /// Destination and source connection ID.
    pub destination: &'a [u8],
    pub source: &'a [u8],
    pub number_at: usize,
    /// Its size; another packet may follow in the datagram.
    pub size: usize,
}

const LONG_HEADER: u8 = 0x80;
const LONGEST_ID: usize = 20;

impl<'a> Long<'a> {
    /// Reads a datagram's first long header; `None` for other packets and versions. Lengths may exceed the datagram.
    pub fn read(datagram: &'a [u8]) -> Option<Self> {
        let first = *datagram.first().filter(|&&first| first & LONG_HEADER != 0)?;
        let mut reader = Reader { bytes: datagram, at: 1 };
        let version = Version::of(u32::from_be_bytes(*reader.take(4)?.first_chunk()?))?;
        let destination = reader.id()?;
        let source = reader.id()?;
        let kind = match (version, first >> 4 & 3) {
            (Version::One, 0) | (Version::Two, 1) => PacketKind::Initial,
            (Version::One, 1) | (Version::Two, 2) => PacketKind::Early,
            (Version::One, 2) | (Version::Two, 3) => PacketKind::Handshake,
            _ => PacketKind::Retry,
        };
        if kind == PacketKind::Retry {
            let size = datagram.len();
            return Some(Self { version, kind, destination, source, number_at: size, size });
        }
        if kind == PacketKind::Initial {
            let token = usize::try_from(reader.number()?).ok()?;
            reader.take(token)?;
        }
        let length = usize::try_from(reader.number()?).ok()?;
        let size = reader.at.checked_add(length)?;
        Some(Self { version, kind, destination, source, number_at: reader.at, size })
    }
}

/// Whether a datagram begins with a long header, in any version.
pub fn is_long(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & LONG_HEADER != 0)
}

/// Reads bytes one after the other.
pub struct Reader<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    /// Reads a big-endian integer with `bytes` bytes.
    pub fn fixed(&mut self, bytes: usize) -> Option<usize> {
        Some(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// A variable-length integer (RFC 9000, section 16).
    pub fn number(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        let bytes = self.take(1 << (first >> 6))?;
        Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |number, &byte| number << 8 | u64::from(byte)))
    }

    fn id(&mut self) -> Option<&'a [u8]> {
        let length = self.fixed(1).filter(|&length| length <= LONGEST_ID)?;
        self.take(length)
    }
}

/// Whether a datagram may open a QUIC connection: an Initial packet of a supported version.
pub fn may_begin(payload: &[u8]) -> bool {
    Long::read(payload).is_some_and(|it| it.kind == PacketKind::Initial)
}
