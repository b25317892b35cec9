//! The emulator in the kernel of virtual time (`kernel/files/arch/um/kernel/path.c`): the kernel carries the packets and writes down what
//! becomes of them; what it has written is booked here, as if a thread of this process had carried them.

use super::accounts::Accounts;
use super::setup::{EmulatorReport, Setup};
use super::slab::changed;
use crate::error::{HostError, Result};
use crate::pair::Pair;
use crosswind_guest::{Event, Events, LARGEST_CHUNK, Settings};
use crosswind_ledger::{DropCause, Headers};
use crosswind_path::{Departure, Side};
use crosswind_units::Duration;
use nix::errno::Errno;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// What is read at once: many chunks.
const BUFFER: usize = 8 * LARGEST_CHUNK;
/// What the length field of an IP packet holds.
const LARGEST_PACKET: usize = 65_535;

/// What the kernel's driver takes.
mod request {
    #![allow(missing_docs)] // of what the macros make

    #[repr(C)]
    pub struct Text {
        pub address: u64,
        pub length: u64,
    }

    #[repr(C)]
    pub struct Device {
        pub name: [u8; 16],
        pub pair: u8,
        pub side: u8,
    }

    nix::ioctl_write_ptr!(settings, b'W', 1, Text);
    nix::ioctl_write_ptr!(device, b'W', 2, Device);
    nix::ioctl_none!(wait, b'W', 3);
    nix::ioctl_write_ptr!(end, b'W', 4, u64);
    nix::ioctl_none!(report, b'W', 5);
}

/// A path in the kernel, without hosts yet.
pub struct KernelPath(File);

/// A path in the kernel.
pub struct KernelEmulator {
    shared: Arc<Shared>,
    reader: thread::JoinHandle<Result<()>>,
}

struct Shared {
    path: File,
    books: Mutex<Books>,
}

impl KernelPath {
    /// Makes a path. None where the kernel has no path of the same sources as this program.
    pub fn open(setup: &Setup) -> Result<Option<Self>> {
        let path = match File::open("/dev/path") {
            Ok(path) => path,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(HostError::new("cannot open the kernel's path", e)),
        };
        let stages = |side| {
            let stages = setup.config.compiled(side, setup.seed);
            stages.map_err(|error| HostError::unsupported("cannot build the path", error.to_string()))
        };
        let settings = Settings {
            origin_ns: setup.clock.origin_ns(),
            keeps_bytes: setup.recorder.wants_bytes(),
            stages: [stages(Side::Forward)?, stages(Side::Reverse)?],
        };
        let text = settings.to_text().map_err(|error| HostError::unsupported("cannot write the path down", error))?;
        let there = request::Text { address: text.as_ptr() as u64, length: text.len() as u64 };
        // SAFETY: the descriptor is open, and the text outlives the call.
        match unsafe { request::settings(path.as_raw_fd(), &raw const there) } {
            Ok(_) => Ok(Some(Self(path))),
            Err(Errno::ESTALE) => Ok(None),
            Err(e) => Err(HostError::new("the kernel does not take the path", e)),
        }
    }
}

impl KernelEmulator {
    /// Gives each host of `pairs` a device called `name` on the path.
    pub fn start(KernelPath(path): KernelPath, pairs: &[Pair], name: &str, setup: Setup) -> Result<Self> {
        for (number, pair) in (0..).zip(pairs) {
            for side in Side::BOTH {
                pair.namespace(side).run(|| make_device(&path, name, number, side))?;
            }
        }
        let hops = setup.config.hops.len() + setup.config.access.len();
        let keeps_copies = setup.recorder.wants_received();
        let accounts = Accounts::new(hops, setup.recorder, setup.payload_clock, setup.punctuality, setup.traffic);
        let shared = Arc::new(Shared { path, books: Mutex::new(Books::new(accounts, keeps_copies)) });
        let reader = thread::Builder::new()
            .name("emulator".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.follow()
            })
            .map_err(|e| HostError::new("cannot start the emulator's thread", e))?;
        Ok(Self { shared, reader })
    }

    /// Books all that has happened so far.
    pub fn catch_up(&self) {
        // `finish` reports an error.
        let _ = self.shared.catch_up();
    }

    /// Lets the path run empty (for at most `limit`), calls `set_down` to take the devices down, and closes the books.
    pub fn finish(self, limit: Duration, set_down: impl FnOnce() -> Result<()>) -> Result<EmulatorReport> {
        let Self { shared, reader } = self;
        let failed = |e| HostError::new("cannot end the kernel's path", e);
        // SAFETY: the descriptor is open, and the number outlives the call.
        unsafe { request::end(shared.path.as_raw_fd(), &limit.as_nanos()) }.map_err(failed)?;
        let down = set_down();
        // SAFETY: the descriptor is open; the request takes no argument.
        unsafe { request::report(shared.path.as_raw_fd()) }.map_err(failed)?;
        reader.join().unwrap_or_else(|_| Err(HostError::unsupported("the emulator's thread", "panicked")))?;
        shared.catch_up()?;
        down?;
        let gone = || HostError::unsupported("the emulator's books", "are still in use");
        let books =
            Arc::into_inner(shared).ok_or_else(gone)?.books.into_inner().unwrap_or_else(PoisonError::into_inner);
        books.close()
    }
}

impl Shared {
    /// Books what happens until the path has ended.
    fn follow(&self) -> Result<()> {
        loop {
            // SAFETY: the descriptor is open; the request takes no argument.
            match unsafe { request::wait(self.path.as_raw_fd()) } {
                Ok(_) => self.catch_up()?,
                Err(Errno::ESHUTDOWN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(e) => return Err(HostError::new("cannot wait for the kernel's path", e)),
            }
        }
    }

    fn catch_up(&self) -> Result<()> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = std::mem::take(&mut books.buffer);
        let result = loop {
            match (&self.path).read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(length) => {
                    let mut events = Events::new(&buffer[..length]);
                    events.by_ref().for_each(|event| books.handle(&event));
                    if !events.rest().is_empty() {
                        break Err(HostError::unsupported("cannot read the kernel's events", "one is none"));
                    }
                }
                Err(e) => break Err(HostError::new("cannot read the kernel's events", e)),
            }
        };
        books.buffer = buffer;
        result
    }
}

fn make_device(path: &File, name: &str, pair: u8, side: Side) -> Result<()> {
    let mut asked = request::Device { name: [0; 16], pair, side: side as u8 };
    asked.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the descriptor is open, and the struct outlives the call.
    unsafe { request::device(path.as_raw_fd(), &raw const asked) }
        .map_err(|e| HostError::new(format!("cannot make the device {name}"), e))?;
    Ok(())
}

/// What the kernel has written, as accounts.
struct Books {
    accounts: Accounts,
    /// Whether packets' bytes are wanted once they have left.
    keeps_copies: bool,
    /// Of each token, the packet that entered with it last.
    packets: Vec<(Headers, Vec<u8>)>,
    /// Packets left inside at the end.
    queued: Option<[u64; 2]>,
    /// For reading.
    buffer: Vec<u8>,
    /// Where a packet is changed.
    space: Box<[u8]>,
}

impl Books {
    fn new(accounts: Accounts, keeps_copies: bool) -> Self {
        let (buffer, space) = (vec![0; BUFFER], vec![0; LARGEST_PACKET].into_boxed_slice());
        Self { accounts, keeps_copies, packets: Vec::new(), queued: None, buffer, space }
    }

    fn handle(&mut self, event: &Event<'_>) {
        let accounts = &mut self.accounts;
        let headers_of = |token: u32| self.packets.get(token as usize).map(|(headers, _)| *headers).unwrap_or_default();
        match *event {
            Event::Entered { side, at, token, size, headers, dropped, bytes } => {
                accounts.handle_arrival(side, at, size);
                accounts.handle_entry(side, at, bytes, dropped.map(DropCause::Path));
                let token = token as usize;
                if self.packets.len() <= token {
                    self.packets.resize_with(token + 1, Default::default);
                }
                let (known, copy) = &mut self.packets[token];
                *known = headers;
                copy.clear();
                if self.keeps_copies {
                    copy.extend_from_slice(bytes);
                }
            }
            Event::Left { side, packet, at, taken } => {
                let headers = headers_of(packet.buffer);
                let bytes = self.packets.get(packet.buffer as usize).map_or(&[][..], |(_, bytes)| bytes);
                let bytes = if bytes.is_empty() { bytes } else { changed(&packet, bytes, &mut self.space) };
                if packet.flipped_bit.is_none() {
                    accounts.handle_release(side, headers, at);
                }
                accounts.handle_departure(side, &packet, at);
                if taken {
                    accounts.handle_delivery(side, &packet, headers, bytes, at);
                } else {
                    accounts.handle_drop(side, &packet, headers, DropCause::Device);
                }
            }
            Event::Dropped { side, packet, cause } => {
                accounts.handle_drop(side, &packet, headers_of(packet.buffer), DropCause::Path(cause));
            }
            Event::Duplicated { side } => accounts.handle_duplicate(side),
            Event::Background { side, packet, cause } => {
                let departure = match cause {
                    Some(cause) => Departure::Dropped(packet, cause),
                    None => Departure::Forwarded(packet),
                };
                accounts.handle_background(side, &departure);
            }
            Event::Icmp { side, at, taken, bytes } => accounts.handle_icmp(side, bytes, at, taken),
            Event::Rest { side, packet } => accounts.handle_rest(side, &packet, headers_of(packet.buffer)),
            Event::Ended { queued, background } => {
                for (side, sent) in Side::BOTH.into_iter().zip(background) {
                    accounts.handle_background_sent(side, sent);
                }
                self.queued = Some(queued);
            }
        }
    }

    fn close(self) -> Result<EmulatorReport> {
        let missing = || HostError::unsupported("the kernel's events", "have no end");
        let queued = self.queued.ok_or_else(missing)?;
        let totals = self.accounts.close();
        Ok(EmulatorReport {
            ledger: totals.ledger,
            queued,
            delay_error: totals.delay_error,
            queueing: totals.queueing,
            starvation: crosswind_ledger::Starvation::default(),
            // Before any process: a timer of the kernel.
            realtime: true,
            in_kernel: true,
            held: Duration::ZERO,
            cpu_ns: 0,
            _devices: Vec::new(),
        })
    }
}
