//! The path as a library of the kernel of virtual time (`arch/um/kernel/path.c`), with the kernel's allocator.
//!
//! Every `path` argument comes from `crosswind_path_new` and has not gone to `crosswind_path_free`. The caller runs one
//! function at a time.

#![no_std]
#![allow(clippy::missing_safety_doc)] // said above

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::mem::ManuallyDrop;
use core::panic::PanicInfo;
use core::{ptr, slice};
use crosswind_vt_forwarder::{Buffer, Forwarding, RawSending, Settings, SettingsError, Side};

unsafe extern "C" {
    fn crosswind_alloc(size: usize) -> *mut u8;
    fn crosswind_free(memory: *mut u8);
    fn crosswind_panic(text: *const u8, length: usize) -> !;
    fn crosswind_packet_free(packet: *mut c_void);
}

struct Kernel;

// SAFETY: the kernel aligns for every type here: to the next power of two, or to 8 bytes if less.
unsafe impl GlobalAlloc for Kernel {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size will do.
        unsafe { crosswind_alloc(layout.size().max(layout.align())) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _: Layout) {
        // SAFETY: it is from `alloc`.
        unsafe { crosswind_free(memory) }
    }
}

#[global_allocator]
static KERNEL: Kernel = Kernel;

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    let text = information.to_string();
    // SAFETY: the text outlives the call, which does not return.
    unsafe { crosswind_panic(text.as_ptr(), text.len()) }
}

/// A kernel packet (`struct sk_buff`) with contiguous bytes.
struct KernelPacket {
    packet: *mut c_void,
    bytes: *const u8,
    length: usize,
}

impl Buffer for KernelPacket {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the packet owns the bytes until this is dropped.
        unsafe { slice::from_raw_parts(self.bytes, self.length) }
    }
}

impl Drop for KernelPacket {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { crosswind_packet_free(self.packet) }
    }
}

type Path = Forwarding<KernelPacket>;

/// `struct crosswind_leaving`.
#[repr(C)]
pub struct Leaving {
    bytes: *const u8,
    length: usize,
    /// -1: none is flipped.
    flipped_bit: i64,
    /// A packet, as its receiver's threads know it.
    cause: u64,
    pair: u8,
    /// The receiving host of this direction: 0 forward, 1 reverse.
    side: u8,
    marked: bool,
}

/// `struct crosswind_events`.
#[repr(C)]
pub struct Events {
    bytes: *mut u8,
    length: usize,
    capacity: usize,
}

/// A path with these settings. On error null, and `problem` is 1 for settings from other sources, else 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_new(text: *const u8, length: usize, problem: *mut c_int) -> *mut c_void {
    // SAFETY: the caller has so many bytes there.
    let settings = Settings::from_text(unsafe { slice::from_raw_parts(text, length) });
    let reason = match settings {
        Ok(settings) => return Box::into_raw(Box::new(Path::new(settings))).cast(),
        Err(SettingsError::OtherSources) => 1,
        Err(SettingsError::Malformed(_)) => 2,
    };
    // SAFETY: the caller has an int there.
    unsafe { *problem = reason };
    ptr::null_mut()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_free(path: *mut c_void) {
    // SAFETY: it is from `crosswind_path_new`.
    drop(unsafe { Box::from_raw(path.cast::<Path>()) });
}

/// Takes a packet from the client (`side` 0) or the server (1) of a pair, and why its kernel sent it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_handle_packet(
    path: *mut c_void,
    pair: u8,
    side: u8,
    now: u64,
    packet: *mut c_void,
    bytes: *const u8,
    length: usize,
    sending: *const RawSending,
) {
    // SAFETY: as the caller promises.
    let (path, sending) = unsafe { (path_of(path), sending.read()) };
    path.handle_packet(pair, side_of(side), now, KernelPacket { packet, bytes, length }, sending);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_release(path: *mut c_void, now: u64) {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.release(now);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_has_left(path: *mut c_void) -> bool {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.has_left()
}

/// The next packet to hand to a host, if any; its bytes live until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_next_leaving(path: *mut c_void, leaving: *mut Leaving) -> bool {
    // SAFETY: as the caller promises.
    let Some(next) = unsafe { path_of(path) }.next_leaving() else { return false };
    let next = Leaving {
        bytes: next.bytes.as_ptr(),
        length: next.bytes.len(),
        flipped_bit: next.flipped_bit.map_or(-1, i64::from),
        cause: next.waker,
        pair: next.pair,
        side: next.side as u8,
        marked: next.marked,
    };
    // SAFETY: the caller has such a struct there.
    unsafe { leaving.write(next) };
    true
}

/// Marks an IP packet (ECN).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_mark(bytes: *mut u8, length: usize) {
    // SAFETY: the caller has so many bytes there.
    crosswind_vt_forwarder::mark(unsafe { slice::from_raw_parts_mut(bytes, length) });
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_handle_offered(path: *mut c_void, now: u64, taken: bool) {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.handle_offered(now, taken);
}

/// All ones: never.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_next_wakeup(path: *mut c_void) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.next_wakeup().unwrap_or(u64::MAX)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_is_empty(path: *mut c_void) -> bool {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.is_empty()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_end(path: *mut c_void) {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.end();
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_report(path: *mut c_void, now: u64) {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.report(now);
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_full_chunks(path: *mut c_void) -> usize {
    // SAFETY: as the caller promises.
    unsafe { path_of(path) }.full_chunks()
}

/// The oldest events, if there are any. The caller has to give them back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_take_events(path: *mut c_void, events: *mut Events) -> bool {
    // SAFETY: as the caller promises.
    let Some(chunk) = unsafe { path_of(path) }.take_events() else { return false };
    let mut chunk = ManuallyDrop::new(chunk);
    let events_there = Events { bytes: chunk.as_mut_ptr(), length: chunk.len(), capacity: chunk.capacity() };
    // SAFETY: the caller has such a struct there.
    unsafe { events.write(events_there) };
    true
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn crosswind_path_give_back_events(path: *mut c_void, events: *const Events) {
    // SAFETY: they are from `crosswind_path_take_events`, and nobody has changed them.
    let (path, chunk) = unsafe {
        let Events { bytes, length, capacity } = events.read();
        (path_of(path), Vec::from_raw_parts(bytes, length, capacity))
    };
    path.give_back_events(chunk);
}

/// The largest piece of events.
#[unsafe(no_mangle)]
pub extern "C" fn crosswind_largest_chunk() -> usize {
    crosswind_vt_forwarder::LARGEST_CHUNK
}

unsafe fn path_of<'a>(path: *mut c_void) -> &'a mut Path {
    // SAFETY: as the caller promises.
    unsafe { &mut *path.cast::<Path>() }
}

fn side_of(number: u8) -> Side {
    if number == 0 { Side::Forward } else { Side::Reverse }
}
