//! The messages of an echo: each carries its number in as many of its first bytes as it has, and a pattern after that.

/// Bytes that hold the number.
const TAG: usize = 8;

/// Writes message `number` into `buffer`.
pub fn write(buffer: &mut [u8], number: u64) {
    let tag = number.to_le_bytes();
    let length = buffer.len().min(TAG);
    buffer[..length].copy_from_slice(&tag[..length]);
}

/// A buffer for messages of `size` bytes, with the pattern in place.
pub fn buffer(size: usize) -> Vec<u8> {
    (0..size).map(|i| (i % 251) as u8).collect()
}

/// As much of a message's number as a message of `size` bytes can carry.
pub fn visible(number: u64, size: usize) -> u64 {
    if size >= TAG { number } else { number & ((1 << (8 * size)) - 1) }
}

/// What can be seen of the number of the message in `buffer`.
pub fn read(buffer: &[u8]) -> u64 {
    let mut tag = [0; TAG];
    let length = buffer.len().min(TAG);
    tag[..length].copy_from_slice(&buffer[..length]);
    u64::from_le_bytes(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_as_far_as_it_fits() {
        for (size, number) in [(1, 300), (2, 70_000), (8, u64::MAX), (1000, 12_345)] {
            let mut message = buffer(size);
            write(&mut message, number);
            assert_eq!(read(&message), visible(number, size));
        }
        assert_eq!(visible(300, 1), 44);
    }

    #[test]
    fn the_pattern_survives_the_number() {
        let mut message = buffer(300);
        write(&mut message, 9);
        assert_eq!(message[8..], buffer(300)[8..]);
    }
}
