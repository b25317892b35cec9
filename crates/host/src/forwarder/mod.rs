//! The emulator's loop: reads packets from one host's device, passes them through the path, writes them to the other's.
//!
//! One thread for both directions, sleeping until a packet comes or is due. It never touches the disk and takes no lock;
//! what it records goes through a channel. When told to finish it lets the path run empty, waits until the devices are
//! down, reads what is left in them, and hands back the counts: every packet is then delivered, dropped or still inside.

mod alarm;
mod backlog;
mod punctuality;
mod slab;
mod traffic;

pub use punctuality::{Punctual, Punctuality};
pub use traffic::{Amount, Traffic, TrafficCounters};

use crate::clock::{Clock, thread_cpu_ns};
use crate::error::{HostError, Result};
use crate::realtime;
use crate::tun::Tun;
use alarm::{Alarm, WHOLE_SHARE};
use backlog::Backlog;
use crosswind_ledger::{
    DropCause, Headers, Ledger, PacketRecord, PayloadClock, Recorder, Starvation, TimeHistogram, Verdict,
};
use crosswind_path::{Departure, Direction, Packet, Path, PathConfig, Side};
use crosswind_units::{Bytes, Duration, Instant, Seed};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::SigSet;
use nix::sys::time::{TimeSpec, TimeValLike};
use slab::Slab;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Packets read from one device before the other, and the clock, get their turn.
const BURST: usize = 16;
/// A sleep that ends sooner found packets that were there before it.
const AT_ONCE: Duration = Duration::from_micros(5);
/// TCP's flag of a new connection (RFC 9293), whose port may have been another's before.
const SYN: u8 = 0x02;
/// How long the loop waits for the devices to be set down at the end.
const HANDOVER: std::time::Duration = std::time::Duration::from_secs(10);

/// What the loop is to do, and with what.
pub struct Setup {
    /// The emulated network.
    pub config: PathConfig,
    /// Where its chance comes from.
    pub seed: Seed,
    /// Shared with everyone who stamps times in this cell.
    pub clock: Clock,
    /// The largest packet.
    pub mtu: usize,
    /// Processors to run on; empty for any.
    pub cpus: Vec<usize>,
    /// Processors on which the hosts receive; empty when it is the emulator's own.
    pub host_cpus: Vec<usize>,
    /// Share of the processor's time for watching the clock, where other emulators run on it too.
    pub watch: Option<f64>,
    /// Packet records and captures.
    pub recorder: Recorder,
    /// First and last payload by connection.
    pub payload_clock: Arc<PayloadClock>,
    /// Told of every packet that leaves.
    pub punctuality: Arc<Punctuality>,
    /// Told of every packet that comes.
    pub traffic: Arc<TrafficCounters>,
}

/// What the loop saw.
pub struct Report {
    /// Counts by direction.
    pub ledger: Ledger,
    /// Packets still inside at the end: forward, reverse.
    pub queued: [u64; 2],
    /// Actual minus nominal time of release.
    pub delay_error: TimeHistogram,
    /// Time in the link's queue: forward, reverse.
    pub queueing: [TimeHistogram; 2],
    /// How long the thread waited for a processor.
    pub starvation: Starvation,
    /// Whether it had real-time priority.
    pub realtime: bool,
    /// CPU time that it used.
    pub cpu_ns: u64,
    /// The devices, which are gone when this is dropped.
    pub(crate) _devices: [Tun; 2],
}

/// The running loop.
pub struct Forwarder {
    thread: thread::JoinHandle<Result<Report>>,
    wake: Arc<EventFd>,
    /// Time by which the path must be empty; `u64::MAX` while the cell runs.
    drain_by: Arc<AtomicU64>,
    /// In a mutex only so that the forwarder can be shared; it is read once, at the end.
    drained: Mutex<Receiver<()>>,
    downed: Sender<()>,
    clock: Clock,
}

impl Forwarder {
    /// Starts the loop between the client's and the server's device.
    pub fn start(client: Tun, server: Tun, setup: Setup) -> Result<Self> {
        let wake = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(|e| HostError::new("cannot make an eventfd", e))?;
        let wake = Arc::new(wake);
        let drain_by = Arc::new(AtomicU64::new(u64::MAX));
        let (drained_sender, drained) = channel();
        let (downed, downed_receiver) = channel();
        let clock = setup.clock;
        let mut run = Loop::new([client, server], setup, Arc::clone(&wake), Arc::clone(&drain_by));
        let thread = thread::Builder::new()
            .name("emulator".into())
            .spawn(move || {
                run.prepare()?;
                run.forward()?;
                // The other side gone means that the process is on its way out: the counts below still hold.
                let _ = drained_sender.send(());
                match downed_receiver.recv_timeout(HANDOVER) {
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
                    Err(RecvTimeoutError::Timeout) => {
                        return Err(HostError::unsupported("the devices were to be set down", "it took over 10 s"));
                    }
                }
                run.read_rest()?;
                run.report()
            })
            .map_err(|e| HostError::new("cannot start the emulator's thread", e))?;
        Ok(Self { thread, wake, drain_by, drained: Mutex::new(drained), downed, clock })
    }

    /// Lets the path run empty (for at most `limit`), calls `set_down` to take the devices down, and ends the loop.
    pub fn finish(self, limit: Duration, set_down: impl FnOnce() -> Result<()>) -> Result<Report> {
        self.drain_by.store((self.clock.now() + limit).as_nanos(), Ordering::Release);
        // Only to wake the loop; when it is already gone, joining says why.
        let _ = self.wake.write(1);
        if let Ok(drained) = self.drained.into_inner() {
            let _ = drained.recv_timeout(std::time::Duration::from(limit) + HANDOVER);
        }
        let down = set_down();
        let _ = self.downed.send(());
        let report =
            self.thread.join().unwrap_or_else(|_| Err(HostError::unsupported("the emulator's thread", "panicked")))?;
        down?;
        Ok(report)
    }
}

struct Loop {
    tuns: [Tun; 2],
    path: Path,
    clock: Clock,
    cpus: Vec<usize>,
    wake: Arc<EventFd>,
    drain_by: Arc<AtomicU64>,
    slab: Slab,
    /// Empty between calls; kept for its memory.
    departures: Vec<Departure>,
    ledger: Ledger,
    delay_error: TimeHistogram,
    queueing: [TimeHistogram; 2],
    recorder: Recorder,
    payload_clock: Arc<PayloadClock>,
    punctuality: Arc<Punctuality>,
    traffic: Arc<TrafficCounters>,
    /// The devices are down: nothing leaves the path any more.
    down: bool,
    /// Packets that would have left it since: forward, reverse.
    kept: [u64; 2],
    /// Whether a packet may wait on a side: client's, server's.
    readable: [bool; 2],
    /// Whether packets of a side come faster than they are read one by one.
    come_together: [bool; 2],
    realtime: bool,
    before: (u64, u64),
    started: Instant,
    alarm: Alarm,
    /// Lets other real-time threads run while it watches the clock.
    yields: bool,
    backlog: Backlog,
}

impl Loop {
    fn new(tuns: [Tun; 2], setup: Setup, wake: Arc<EventFd>, drain_by: Arc<AtomicU64>) -> Self {
        // Without a processor of its own it would keep the hosts from theirs.
        let share = if setup.cpus.is_empty() { 0.0 } else { setup.watch.unwrap_or(WHOLE_SHARE) };
        Self {
            tuns,
            path: Path::from_config(&setup.config, setup.seed),
            clock: setup.clock,
            cpus: setup.cpus,
            wake,
            drain_by,
            slab: Slab::new(setup.mtu),
            departures: Vec::with_capacity(64),
            ledger: Ledger::new(),
            delay_error: TimeHistogram::new(),
            queueing: [TimeHistogram::new(), TimeHistogram::new()],
            recorder: setup.recorder,
            payload_clock: setup.payload_clock,
            punctuality: setup.punctuality,
            traffic: setup.traffic,
            down: false,
            kept: [0, 0],
            alarm: Alarm::new(share),
            yields: setup.watch.is_some(),
            backlog: Backlog::of(&setup.host_cpus),
            readable: [true, true],
            come_together: [true, true],
            realtime: false,
            before: (0, 0),
            started: Instant::ZERO,
        }
    }

    fn prepare(&mut self) -> Result<()> {
        if !self.cpus.is_empty() {
            realtime::pin(&self.cpus)?;
        }
        realtime::sharpen_timers();
        self.realtime = realtime::raise_priority();
        self.punctuality.start();
        self.started = self.clock.now();
        self.before = realtime::run_and_wait_ns().unwrap_or_default();
        Ok(())
    }

    /// Forwards until it is time to finish and nothing is inside.
    fn forward(&mut self) -> Result<()> {
        loop {
            for side in Side::BOTH {
                if self.readable[side as usize] {
                    self.read_burst(side)?;
                }
            }
            self.release(self.clock.now());
            if self.readable != [false, false] {
                continue;
            }
            let drain_by = self.drain_by.load(Ordering::Acquire);
            if drain_by != u64::MAX && (self.queued() == [0, 0] || self.clock.now() >= Instant::from_nanos(drain_by)) {
                return Ok(());
            }
            self.sleep(drain_by)?;
        }
    }

    /// Reads what waits on one side, up to a burst. To learn that nothing more waits takes a read of its own, which is left
    /// to the next sleep where packets come one by one.
    fn read_burst(&mut self, side: Side) -> Result<()> {
        let most = if self.come_together[side as usize] { BURST } else { 1 };
        let mut count = 0;
        while count < most && self.read_packet(side)? {
            count += 1;
            self.release(self.clock.now());
        }
        self.readable[side as usize] = count == most && most > 1;
        if count < 2 && most > 1 {
            self.come_together[side as usize] = false;
        }
        Ok(())
    }

    /// Reads one packet that a host sent, into the path. False when none waits.
    fn read_packet(&mut self, side: Side) -> Result<bool> {
        let token = self.slab.take();
        let read = self.tuns[side as usize].read(self.slab.space(token));
        let length = match read {
            Ok(Some(length)) => length,
            Ok(None) => {
                self.slab.give_back(token);
                return Ok(false);
            }
            Err(e) => return Err(HostError::new("cannot read from a TUN device", e)),
        };
        let now = self.clock.now();
        let size = Bytes(length as u64);
        let headers = Headers::parse(&self.slab.space(token)[..length]);
        self.slab.fill(token, length, headers);
        self.ledger.handle_arrival(side, size);
        self.traffic.count(side, size.0);
        self.direction(side).handle_packet(now, size, token);
        self.settle(side, now, Some(token));
        Ok(true)
    }

    /// Releases everything that is due.
    fn release(&mut self, now: Instant) {
        for side in Side::BOTH {
            self.settle(side, now, None);
        }
    }

    /// Takes what has left the path by `now`. `entered` is a packet that has just come in: it is captured before anything
    /// that leaves, with its verdict if that fell at once.
    fn settle(&mut self, side: Side, now: Instant, entered: Option<u32>) {
        let mut departures = std::mem::take(&mut self.departures);
        departures.extend(std::iter::from_fn(|| self.direction(side).poll_packet(now)));
        if let Some(token) = entered {
            let verdict = departures.iter().find_map(|departure| match departure {
                Departure::Dropped(packet, cause) if packet.buffer == token => Some(DropCause::Path(*cause)),
                _ => None,
            });
            self.recorder.sent(side, now, self.slab.bytes(token), verdict);
        }
        for departure in departures.drain(..) {
            let packet = match departure {
                Departure::Forwarded(packet) => {
                    if self.down {
                        self.keep(side, &packet);
                    } else {
                        self.deliver(side, &packet);
                    }
                    packet
                }
                Departure::Dropped(packet, cause) => {
                    self.drop_packet(side, &packet, DropCause::Path(cause));
                    packet
                }
            };
            self.slab.give_back(packet.buffer);
        }
        self.departures = departures;
    }

    fn deliver(&mut self, side: Side, packet: &Packet) {
        self.backlog.make_room();
        let actual = self.clock.now();
        let bytes = self.slab.bytes(packet.buffer);
        let headers = self.slab.headers(packet.buffer);
        if headers.payload_bytes > 0 || headers.flags & SYN != 0 {
            // Before the host has the packet: who has received it may then read the clock.
            let client_port = if side == Side::Forward { headers.source_port } else { headers.destination_port };
            if headers.flags & SYN != 0 {
                for side in Side::BOTH {
                    self.payload_clock.reset(side, client_port);
                }
            } else {
                self.payload_clock.record(side, client_port, actual);
            }
        }
        // A host that takes no packet (its device is down, its memory is full) is a drop by the device.
        let taken = self.tuns[1 - side as usize].write(bytes).is_ok();
        let error = actual.saturating_since(packet.at);
        self.delay_error.record(error.as_nanos());
        self.punctuality.record(error);
        self.queueing[side as usize].record(packet.spent.queueing.as_nanos());
        if !taken {
            self.drop_packet(side, packet, DropCause::Device);
            return;
        }
        self.ledger.handle_delivery(side, packet.size);
        self.recorder.received(side, actual, self.slab.bytes(packet.buffer));
        self.recorder.packet(record(side, packet, headers, Some(actual), Verdict::Delivered));
    }

    fn keep(&mut self, side: Side, packet: &Packet) {
        self.kept[side as usize] += 1;
        let headers = self.slab.headers(packet.buffer);
        self.recorder.packet(record(side, packet, headers, None, Verdict::Queued));
    }

    fn drop_packet(&mut self, side: Side, packet: &Packet, cause: DropCause) {
        self.ledger.handle_drop(side, cause);
        let headers = self.slab.headers(packet.buffer);
        self.recorder.packet(record(side, packet, headers, None, Verdict::Dropped(cause)));
    }

    /// Sleeps until a packet comes, one is due, or somebody wakes the loop.
    fn sleep(&mut self, drain_by: u64) -> Result<()> {
        let next = [self.path.forward.next_wakeup(), self.path.reverse.next_wakeup()];
        let mut next = next.into_iter().flatten().min();
        if drain_by != u64::MAX {
            let limit = Instant::from_nanos(drain_by);
            next = Some(next.map_or(limit, |next| next.min(limit)));
        }
        let now = self.clock.now();
        let alarm = next.map(|next| self.alarm.before(next, now));
        if alarm.is_some_and(|alarm| alarm <= now) {
            if self.yields {
                let _ = nix::sched::sched_yield();
            }
            self.readable = [true, true];
            return Ok(());
        }
        let wait = alarm.map(|alarm| alarm.saturating_since(now));
        let mut fds = [
            PollFd::new(self.tuns[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.tuns[1].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.wake.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = wait.map(|wait| TimeSpec::nanoseconds(wait.as_nanos() as i64));
        match ppoll(&mut fds, timeout, None::<SigSet>) {
            Ok(0) => {
                if let Some(alarm) = alarm {
                    self.alarm.handle_wakeup(self.clock.now().saturating_since(alarm));
                }
            }
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(HostError::new("cannot wait for packets", e)),
        }
        for side in Side::BOTH {
            self.readable[side as usize] = fds[side as usize].any().unwrap_or(false);
        }
        if self.readable != [false, false] && self.clock.now().saturating_since(now) < AT_ONCE {
            self.come_together = self.readable;
        }
        if fds[2].any().unwrap_or(false) {
            // Cleared so that it does not wake the loop again; the time to finish stands in `drain_by`.
            let _ = self.wake.read();
        }
        Ok(())
    }

    /// The devices are down: what they still hold goes into the path and stays there. A host answers on its own what it has just
    /// got (a reset to who is gone), also when the path was empty a moment before.
    fn read_rest(&mut self) -> Result<()> {
        self.down = true;
        for side in Side::BOTH {
            while self.read_packet(side)? {}
        }
        Ok(())
    }

    fn report(mut self) -> Result<Report> {
        let queued = self.queued();
        for side in Side::BOTH {
            while let Some(departure) = self.direction(side).poll_packet(Instant::from_nanos(u64::MAX)) {
                self.keep(side, departure.packet());
            }
        }
        self.recorder.finish();
        let (run, wait) = realtime::run_and_wait_ns().map_err(|e| HostError::new("cannot read schedstat", e))?;
        Ok(Report {
            ledger: self.ledger,
            queued,
            delay_error: self.delay_error,
            queueing: self.queueing,
            starvation: Starvation {
                run_ns: run - self.before.0,
                wait_ns: wait - self.before.1,
                elapsed_ns: (self.clock.now() - self.started).as_nanos(),
            },
            realtime: self.realtime,
            cpu_ns: thread_cpu_ns(),
            _devices: self.tuns,
        })
    }

    fn queued(&self) -> [u64; 2] {
        let [forward, reverse] = self.kept;
        [self.path.forward.queued() as u64 + forward, self.path.reverse.queued() as u64 + reverse]
    }

    fn direction(&mut self, side: Side) -> &mut Direction {
        self.path.side(side)
    }
}

fn record(side: Side, packet: &Packet, headers: Headers, left: Option<Instant>, verdict: Verdict) -> PacketRecord {
    PacketRecord {
        side,
        index: packet.index,
        size: packet.size,
        headers,
        entered: packet.entered,
        due: packet.at,
        left,
        verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_ledger::DeviceCounters;
    use std::os::unix::net::UnixDatagram;

    const PACKET: [u8; 40] = [0; 40];

    /// A loop between two hosts that are sockets here: one datagram is one packet.
    fn emulator() -> (Loop, [UnixDatagram; 2]) {
        let setup = Setup {
            config: PathConfig::default(),
            seed: Seed(1),
            clock: Clock::start(),
            mtu: 1500,
            cpus: Vec::new(),
            host_cpus: Vec::new(),
            watch: None,
            recorder: Recorder::off(),
            payload_clock: Arc::new(PayloadClock::new()),
            punctuality: Arc::new(Punctuality::new(Duration::from_millis(100))),
            traffic: Arc::default(),
        };
        let (hosts, devices): (Vec<_>, Vec<_>) = (0..2).map(|_| UnixDatagram::pair().unwrap()).unzip();
        let devices = devices.into_iter().map(|device| {
            device.set_nonblocking(true).unwrap();
            Tun::over(device.into())
        });
        let devices = <[Tun; 2]>::try_from(devices.collect::<Vec<_>>()).unwrap();
        let wake = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK).unwrap();
        let emulator = Loop::new(devices, setup, Arc::new(wake), Arc::new(AtomicU64::new(0)));
        (emulator, hosts.try_into().unwrap())
    }

    #[test]
    fn what_comes_after_the_path_has_run_empty_stays_in_it() {
        let (mut emulator, [client, server]) = emulator();
        client.send(&PACKET).unwrap();
        emulator.forward().unwrap();
        assert_eq!(server.recv(&mut [0; 100]).unwrap(), PACKET.len());
        server.send(&PACKET).unwrap();
        drop((client, server));
        emulator.read_rest().unwrap();
        let report = emulator.report().unwrap();
        assert_eq!(report.queued, [0, 1]);
        let sent = DeviceCounters { sent: 1, sent_bytes: 40, ..DeviceCounters::default() };
        let books =
            report.ledger.close(report.queued, sent, DeviceCounters { received: 1, received_bytes: 40, ..sent });
        assert_eq!(books.mismatches(), [""; 0]);
        assert_eq!((books.forward.delivered, books.reverse.queued), (1, 1));
        assert_eq!([books.forward.dropped.total(), books.reverse.dropped.total()], [0, 0]);
    }
}
