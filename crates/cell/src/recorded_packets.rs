//! Times and sizes of a capture's packets: pcap and pcapng, without I/O.

/// Link types with known headers, and the header's length (tcpdump.org/linktypes.html).
const LINK_HEADERS: [(u32, usize); 7] = [(0, 4), (1, 14), (101, 0), (113, 16), (228, 0), (229, 0), (276, 20)];
const ETHERNET: u32 = 1;
/// VLAN tags, 802.1Q and 802.1ad.
const VLAN: [u16; 2] = [0x8100, 0x88a8];

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const ENHANCED: u32 = 6;
const TIME_RESOLUTION: u16 = 9;

/// A time in seconds since the first packet and a size in bytes on the IP layer for each IP packet of a capture, one after the other in
/// the order of time; `None` where the bytes are no capture.
pub fn recorded_packets(bytes: &[u8]) -> Option<Result<Vec<f64>, String>> {
    let magic = Bytes { bytes, big: false }.u32(0)?;
    let packets = match magic {
        SECTION => of_pcapng(bytes),
        0xA1B2_C3D4 => of_pcap(Bytes { bytes, big: false }, 1_000),
        0xD4C3_B2A1 => of_pcap(Bytes { bytes, big: true }, 1_000),
        0xA1B2_3C4D => of_pcap(Bytes { bytes, big: false }, 1),
        0x4D3C_B2A1 => of_pcap(Bytes { bytes, big: true }, 1),
        _ => return None,
    };
    Some(packets.and_then(|mut packets| {
        packets.sort_by_key(|(ns, _)| *ns);
        let first = packets.first().ok_or("has no IP packets")?.0;
        // A float holds every nanosecond of a difference, but not of a time since 1970.
        Ok(packets.iter().flat_map(|(ns, size)| [(ns - first) as f64 / 1e9, f64::from(*size)]).collect())
    }))
}

/// Bytes, and their numbers' byte order.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Bytes<'a> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn u16(self, at: usize) -> Option<u16> {
        let bytes = self.array(at)?;
        Some(if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(self, at: usize) -> Option<u32> {
        let bytes = self.array(at)?;
        Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn slice(self, at: usize, length: usize) -> Option<&'a [u8]> {
        self.bytes.get(at..at.checked_add(length)?)
    }
}

fn of_pcap(file: Bytes<'_>, unit_ns: u64) -> Result<Vec<(u64, u32)>, String> {
    let link = file.u32(20).ok_or("ends in its header")? & 0x0FFF_FFFF;
    let mut packets = Vec::new();
    let mut at = 24;
    while at < file.bytes.len() {
        let record = || {
            let [seconds, fraction, length] = [file.u32(at)?, file.u32(at + 4)?, file.u32(at + 8)?];
            Some((
                u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit_ns,
                file.slice(at + 16, length as usize)?,
            ))
        };
        let Some((ns, bytes)) = record() else { return Err(format!("ends within the packet at byte {at}")) };
        packets.extend(ip_size(link, bytes)?.map(|size| (ns, size)));
        at += 16 + bytes.len();
    }
    Ok(packets)
}

fn of_pcapng(bytes: &[u8]) -> Result<Vec<(u64, u32)>, String> {
    let mut file = Bytes { bytes, big: false };
    // Each interface's link type in this section, and its time unit in nanoseconds, as a fraction.
    let mut interfaces: Vec<(u32, u128, u128)> = Vec::new();
    let mut packets = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let is_section = Bytes { bytes, big: false }.u32(at) == Some(SECTION);
        if is_section {
            file.big = Bytes { bytes, big: true }.u32(at + 8) == Some(0x1A2B_3C4D);
            interfaces.clear();
        }
        let block = || {
            let length = file.u32(at + 4)? as usize;
            Some((file.u32(at)?, length, Bytes { bytes: file.slice(at + 8, length.checked_sub(12)?)?, ..file }))
        };
        let Some((kind, length, body)) = block() else { return Err(format!("ends within the block at byte {at}")) };
        let short = || format!("has a block at byte {at} that is too short");
        if kind == INTERFACE {
            let (numerator, denominator) = unit_of(body);
            interfaces.push((body.u16(0).ok_or_else(short)?.into(), numerator, denominator));
        } else if kind == ENHANCED {
            let fields = || Some([body.u32(0)?, body.u32(4)?, body.u32(8)?, body.u32(12)?]);
            let [interface, high, low, captured] = fields().ok_or_else(short)?;
            let (link, numerator, denominator) =
                *interfaces.get(interface as usize).ok_or_else(|| format!("names no interface at byte {at}"))?;
            let units = u128::from(high) << 32 | u128::from(low);
            let ns = u64::try_from(units * numerator / denominator).map_err(|_| format!("has no time at byte {at}"))?;
            let bytes = body.slice(20, captured as usize).ok_or_else(short)?;
            packets.extend(ip_size(link, bytes)?.map(|size| (ns, size)));
        }
        at += length;
    }
    Ok(packets)
}

/// An interface's time unit in nanoseconds, as a fraction: microseconds unless an option gives another.
fn unit_of(interface: Bytes<'_>) -> (u128, u128) {
    let mut at = 8;
    while let (Some(code), Some(length)) = (interface.u16(at), interface.u16(at + 2)) {
        match interface.slice(at + 4, length.into()) {
            Some([power]) if code == TIME_RESOLUTION => {
                let base: u128 = if power & 0x80 == 0 { 10 } else { 2 };
                return (1_000_000_000, base.checked_pow(u32::from(power & 0x7F)).unwrap_or(u128::MAX));
            }
            Some(_) if code != 0 => at += 4 + usize::from(length).next_multiple_of(4),
            _ => break,
        }
    }
    (1_000, 1)
}

/// An IP packet's size by its header, whatever was captured; none for other packets.
fn ip_size(link: u32, bytes: &[u8]) -> Result<Option<u32>, String> {
    let Some(&(_, mut header)) = LINK_HEADERS.iter().find(|(known, _)| *known == link) else {
        return Err(format!("is of link type {link}, whose headers are not known"));
    };
    let packet = Bytes { bytes, big: true };
    while link == ETHERNET && packet.u16(header - 2).is_some_and(|kind| VLAN.contains(&kind)) {
        header += 4;
    }
    let Some(version) = bytes.get(header).map(|byte| byte >> 4) else { return Ok(None) };
    if link == ETHERNET && !matches!(packet.u16(header - 2), Some(0x0800 | 0x86DD)) {
        return Ok(None);
    }
    Ok(match version {
        4 => packet.u16(header + 2).filter(|size| *size > 0).map(u32::from),
        6 => packet.u16(header + 4).map(|payload| (u32::from(payload) + 40).min(65_535)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(size: u16) -> Vec<u8> {
        let mut bytes = vec![0x45, 0];
        bytes.extend(size.to_be_bytes());
        bytes.resize(20, 0);
        bytes
    }

    /// A capture's packets are in order of time, with valid IP sizes.
    fn assert_plausible(bytes: &[u8]) {
        if let Some(Ok(packets)) = recorded_packets(bytes) {
            let times: Vec<f64> = packets.iter().step_by(2).copied().collect();
            assert!(packets.len().is_multiple_of(2) && times[0] == 0.0 && times.is_sorted());
            assert!(packets.iter().skip(1).step_by(2).all(|size| (1.0..=65_535.0).contains(size)));
        }
    }

    /// Whatever one of its bytes is, and wherever it ends.
    fn assert_safe(file: &[u8]) {
        for at in 0..file.len() {
            assert_plausible(&file[..at]);
            for byte in [0, 1, 0x7F, 0x80, 0xFF] {
                let mut damaged = file.to_vec();
                damaged[at] = byte;
                assert_plausible(&damaged);
            }
        }
    }

    #[test]
    fn a_pcap_of_ethernet_has_its_ip_packets() {
        let mut file: Vec<u8> =
            [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 1].iter().flat_map(|word| word.to_le_bytes()).collect();
        let frames = [(10_u32, 999_000_u32, 0x0800_u16, 1500_u16), (11, 0, 0x0806, 28), (11, 500, 0x0800, 40)];
        for (seconds, micros, kind, size) in frames {
            let mut frame = vec![0; 12];
            frame.extend(kind.to_be_bytes());
            frame.extend(ipv4(size));
            for word in [seconds, micros, frame.len() as u32, 1514] {
                file.extend(word.to_le_bytes());
            }
            file.extend(frame);
        }
        assert_eq!(recorded_packets(&file), Some(Ok(vec![0.0, 1500.0, 0.0015, 40.0])));
        let cut = &file[..file.len() - 1];
        assert_eq!(recorded_packets(cut), Some(Err("ends within the packet at byte 124".to_owned())));
        assert_eq!(recorded_packets(b"0 1500\n"), None);
        assert_safe(&file);
    }

    #[test]
    fn a_pcapng_of_the_ledger_has_every_packet_with_its_nanosecond() {
        let options = crosswind_ledger::CaptureOptions {
            host: "client",
            snap_bytes: 1500,
            wall_clock_origin_ns: 1_700_000_000_000_000_000,
        };
        let mut file = Vec::new();
        let mut capture = crosswind_ledger::Capture::new(&mut file, options).unwrap();
        for (ns, size) in [(5, 40), (1_000_000_006, 1500)] {
            capture.received(crosswind_units::Instant::from_nanos(ns), &ipv4(size)).unwrap();
        }
        capture.finish().unwrap();
        assert_eq!(recorded_packets(&file), Some(Ok(vec![0.0, 40.0, 1.000_000_001, 1500.0])));
        assert_safe(&file);
    }
}
