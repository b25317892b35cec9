//! A TLS handshake's random number, both ends' transport parameters (RFC 9001, 8.2; RFC 9000, section 18), and whether
//! a client offers HTTP/2 (RFC 7301; RFC 9113, section 3.2).

use crate::header::Reader;
use crate::key_log::Random;
use crosswind_ledger::QuicFrame;

const CLIENT_HELLO: usize = 1;
const ENCRYPTED_EXTENSIONS: usize = 8;
const PROTOCOLS: usize = 0x10;
const HTTP_2: &[u8] = b"h2";
const TRANSPORT_PARAMETERS: usize = 0x39;

const MAX_DATA: u64 = 0x04;
const MAX_STREAM_DATA_OWN: u64 = 0x05;
const MAX_STREAM_DATA_OTHERS: u64 = 0x06;
const MAX_STREAM_DATA_ONE_WAY: u64 = 0x07;

/// The random number in a leading `ClientHello`, once complete.
pub fn random(bytes: &[u8]) -> Option<Random> {
    let mut reader = Reader { bytes, at: 0 };
    reader.fixed(1).filter(|&kind| kind == CLIENT_HELLO)?;
    // Length and version.
    reader.take(3 + 2)?;
    reader.take(32)?.try_into().ok()
}

/// The transport parameters in a client's `ClientHello` or a server's `EncryptedExtensions`, as limits.
pub fn parameters(bytes: &[u8], is_client: bool) -> Option<[QuicFrame; 2]> {
    limits(extension(bytes, is_client, TRANSPORT_PARAMETERS)?, is_client)
}

/// Whether a `ClientHello` offers HTTP/2; `None` until it is complete.
pub fn offers_http2(bytes: &[u8]) -> Option<bool> {
    let mut reader = Reader { bytes, at: 0 };
    if reader.fixed(1)? != CLIENT_HELLO {
        return Some(false);
    }
    let length = reader.fixed(3)?;
    reader.take(length)?;
    let offers = || {
        let mut reader = Reader { bytes: extension(bytes, true, PROTOCOLS)?, at: 2 };
        loop {
            let length = reader.fixed(1)?;
            if reader.take(length)? == HTTP_2 {
                return Some(());
            }
        }
    };
    Some(offers().is_some())
}

/// An extension of a client's `ClientHello` or a server's `EncryptedExtensions`.
fn extension(bytes: &[u8], is_client: bool, wanted: usize) -> Option<&[u8]> {
    let mut reader = Reader { bytes, at: 0 };
    let message = if is_client { CLIENT_HELLO } else { ENCRYPTED_EXTENSIONS };
    reader.fixed(1).filter(|&kind| kind == message)?;
    let length = reader.fixed(3)?;
    let mut message = Reader { bytes: reader.take(length)?, at: 0 };
    if is_client {
        message.take(2 + 32)?;
        // Session, cipher suites, compression methods.
        for bytes in [1, 2, 1] {
            let length = message.fixed(bytes)?;
            message.take(length)?;
        }
    }
    let length = message.fixed(2)?;
    let mut extensions = Reader { bytes: message.take(length)?, at: 0 };
    loop {
        let (kind, length) = (extensions.fixed(2)?, extensions.fixed(2)?);
        let extension = extensions.take(length)?;
        if kind == wanted {
            return Some(extension);
        }
    }
}

/// An absent limit is 0.
fn limits(bytes: &[u8], is_client: bool) -> Option<[QuicFrame; 2]> {
    let mut reader = Reader { bytes, at: 0 };
    let (mut all, mut own, mut others, mut one_way) = (0, 0, 0, 0);
    while reader.at < bytes.len() {
        let (kind, length) = (reader.number()?, usize::try_from(reader.number()?).ok()?);
        let value = reader.take(length)?;
        let limit = match kind {
            MAX_DATA => &mut all,
            MAX_STREAM_DATA_OWN => &mut own,
            MAX_STREAM_DATA_OTHERS => &mut others,
            MAX_STREAM_DATA_ONE_WAY => &mut one_way,
            _ => continue,
        };
        *limit = Reader { bytes: value, at: 0 }.number()?;
    }
    Some([QuicFrame::MaxData(all), QuicFrame::StreamLimits { is_client, own, others, one_way }])
}
