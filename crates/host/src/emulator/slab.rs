//! The bytes of packets inside the path, by token. The slab grows on demand and never shrinks. A packet too large for
//! its buffers has one of its own.

use super::accounts::Known;
use crosswind_packet::mark;
use crosswind_path::Packet;

/// Equal-sized buffers, reused.
pub struct Slab {
    size: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    bytes: Box<[u8]>,
    length: usize,
    known: Known,
    /// Copies in the path that share these bytes, beyond the first.
    copies: u32,
}

/// Buffers at the start: 1.5 MB at an MTU of 1500.
const INITIAL_BUFFERS: usize = 1024;

impl Slab {
    /// Buffers of `size` bytes.
    pub fn new(size: usize) -> Self {
        let mut slab = Self { size, slots: Vec::new(), free: Vec::new() };
        let tokens: Vec<u32> = (0..INITIAL_BUFFERS).map(|_| slab.take()).collect();
        slab.free = tokens;
        slab
    }

    /// A free buffer.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let bytes = vec![0; self.size].into_boxed_slice();
            self.slots.push(Slot { bytes, length: 0, known: Known::default(), copies: 0 });
            (self.slots.len() - 1) as u32
        })
    }

    /// One more packet shares the buffer's bytes.
    pub fn share(&mut self, token: u32) {
        self.slots[token as usize].copies += 1;
    }

    /// Takes a buffer back for reuse, once no packet has its bytes any more.
    pub fn give_back(&mut self, token: u32) {
        let slot = &mut self.slots[token as usize];
        if slot.copies > 0 {
            slot.copies -= 1;
            return;
        }
        if slot.bytes.len() > self.size {
            slot.bytes = vec![0; self.size].into_boxed_slice();
        }
        self.free.push(token);
    }

    /// Appends the rest to a full buffer.
    pub fn append(&mut self, token: u32, rest: &[u8]) {
        let slot = &mut self.slots[token as usize];
        slot.bytes = [&slot.bytes, rest].concat().into_boxed_slice();
    }

    /// The whole buffer, to read a packet into.
    pub fn space(&mut self, token: u32) -> &mut [u8] {
        &mut self.slots[token as usize].bytes
    }

    /// Sets the length and the facts for the packet in the buffer.
    pub fn fill(&mut self, token: u32, length: usize, known: Known) {
        let slot = &mut self.slots[token as usize];
        (slot.length, slot.known) = (length, known);
    }

    /// The packet in the buffer.
    pub fn bytes(&self, token: u32) -> &[u8] {
        let slot = &self.slots[token as usize];
        &slot.bytes[..slot.length]
    }

    /// The facts about the packet in the buffer.
    pub fn known(&self, token: u32) -> Known {
        self.slots[token as usize].known
    }
}

/// The bytes of a packet as the path hands them out: marked, and with its flipped bit. They are changed in `space`, for other packets may
/// have them too.
pub fn changed<'a>(packet: &Packet, bytes: &'a [u8], space: &'a mut [u8]) -> &'a [u8] {
    let is_marked = packet.marked_in.is_some();
    if !is_marked && packet.flipped_bit.is_none() {
        return bytes;
    }
    let changed = &mut space[..bytes.len()];
    changed.copy_from_slice(bytes);
    if is_marked {
        mark(changed);
    }
    if let Some(bit) = packet.flipped_bit {
        changed[bit as usize / 8] ^= 0x80 >> (bit % 8);
    }
    changed
}
