//! The forwarding loop: from the devices into the path, and from the path to the devices.

use super::accounts::{Accounts, Known};
use super::alarm::{Alarm, SHARE_WHEN_ALONE};
use super::backlog::Backlog;
use super::devices::{Devices, Sender, Woken};
use super::intake::Intake;
use super::setup::{EmulatorReport, Setup};
use super::slab::{Slab, changed};
use super::thread_time::ThreadTime;
use crate::clock::Clock;
use crate::error::Result;
use crate::guest::in_virtual_time;
use crate::tun::Tun;
use crosswind_ledger::{DropCause, Headers, Service};
use crosswind_packet::{Place, icmp_about};
use crosswind_path::{Arrival, Departure, Packet, Path, Side};
use crosswind_units::{Bytes, Duration, Instant};
use nix::sys::eventfd::EventFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The limit of an IP packet's length field.
const LARGEST_PACKET: usize = 65_535;

/// A packet still in the path by then stays for good, as before a stalled link.
const PATH_EMPTY: Duration = Duration::from_secs(86_400);

/// `drain_by` while the cell runs.
pub const RUNNING: u64 = u64::MAX;

/// The emulator thread's state.
pub struct ForwardingLoop {
    path: Path,
    devices: Devices,
    /// The bytes of packets inside the path.
    slab: Slab,
    accounts: Accounts,
    clock: Clock,
    /// Says how long before a packet is due the thread stops sleeping.
    alarm: Alarm,
    intake: Intake,
    /// Whether other real-time threads may run while this thread watches the clock.
    yields: bool,
    backlog: Backlog,
    cpus: Vec<usize>,
    thread: ThreadTime,
    /// Deadline for the path to be empty, nanoseconds; `RUNNING` while the cell runs.
    drain_by: Arc<AtomicU64>,
    /// Once the devices are down: packets lost to that since, forward and reverse.
    undeliverable: Option<[u64; 2]>,
    /// Empty between calls; kept for its memory.
    departures: Vec<Departure>,
    /// Room for the rest of a packet larger than the devices' MTU, and for changing a packet.
    rest: Box<[u8]>,
}

impl ForwardingLoop {
    /// A loop that has not begun, for pairs of hosts. The client's device comes first; `wake` ends a sleep.
    pub fn new(pairs: Vec<[Tun; 2]>, setup: Setup, wake: Arc<EventFd>, drain_by: Arc<AtomicU64>) -> Self {
        // Without a processor of its own it would take the hosts' time.
        let share = if setup.cpus.is_empty() { 0.0 } else { setup.watch.unwrap_or(SHARE_WHEN_ALONE) };
        Self {
            path: Path::from_config(&setup.config, setup.seed),
            devices: Devices::new(pairs, wake),
            slab: Slab::new(setup.mtu),
            accounts: Accounts::new(
                setup.config.hops.len() + setup.config.access.len(),
                setup.recorder,
                setup.payload_clock,
                setup.punctuality,
                setup.traffic,
            ),
            clock: setup.clock,
            alarm: Alarm::new(share),
            intake: Intake::new(
                Side::BOTH.map(|side| {
                    let rate = setup.config.effect(side).rate?;
                    Some(rate.transmission(Bytes(setup.mtu as u64), 0).duration)
                }),
                in_virtual_time(),
            ),
            yields: setup.watch.is_some(),
            backlog: Backlog::new(&setup.host_cpus),
            cpus: setup.cpus,
            thread: ThreadTime::unprepared(),
            drain_by,
            undeliverable: None,
            departures: Vec::with_capacity(64),
            rest: vec![0; LARGEST_PACKET].into_boxed_slice(),
        }
    }

    /// Makes the calling thread the emulator's.
    pub fn prepare(&mut self) -> Result<()> {
        self.thread = ThreadTime::start(&self.cpus, self.clock)?;
        self.accounts.start();
        Ok(())
    }

    /// Forwards until it is time to finish and nothing is inside.
    pub fn forward(&mut self) -> Result<()> {
        loop {
            for sender in self.devices.senders() {
                if self.devices.is_readable(sender) {
                    self.read_burst(sender)?;
                }
            }
            let now = self.clock.now();
            self.release(now);
            if self.devices.any_readable() && self.intake.resumes(now).is_none() {
                continue;
            }
            let drain_by = self.drain_by.load(Ordering::Acquire);
            if drain_by != RUNNING && (self.queued() == [0, 0] || self.clock.now() >= Instant::from_nanos(drain_by)) {
                return Ok(());
            }
            self.sleep(drain_by)?;
        }
    }

    /// Reads the packets left in the devices, now down, into the path, where they stay. A host's kernel may have sent
    /// them on its own (a reset to a dead process) after the path was empty.
    pub fn read_rest(&mut self) -> Result<()> {
        self.undeliverable = Some([0, 0]);
        for sender in self.devices.senders() {
            while self.read_packet(sender)? {}
        }
        Ok(())
    }

    /// Closes the accounts.
    pub fn report(mut self) -> Result<EmulatorReport> {
        let queued = self.queued();
        let end = self.clock.now() + PATH_EMPTY;
        self.path.end_background();
        for (side, sent) in Side::BOTH.into_iter().zip(self.path.background()) {
            while let Some(departure) = self.path.poll_packet(side, end) {
                let packet = departure.packet();
                if packet.is_background {
                    // It was inside at the end.
                    continue;
                }
                if matches!(departure, Departure::Duplicated(_)) {
                    self.accounts.handle_duplicate(side);
                    continue;
                }
                self.accounts.handle_rest(side, packet, self.slab.known(packet.buffer));
            }
            self.accounts.handle_background_sent(side, sent);
        }
        let totals = self.accounts.close();
        Ok(EmulatorReport {
            ledger: totals.ledger,
            queued,
            delay_error: totals.delay_error,
            queueing: totals.queueing,
            starvation: self.thread.starvation(self.clock)?,
            realtime: self.thread.is_realtime(),
            in_kernel: false,
            held: self.intake.held(),
            cpu_ns: ThreadTime::cpu_ns(),
            _devices: self.devices.into_tuns(),
        })
    }

    fn read_burst(&mut self, sender: Sender) -> Result<()> {
        let limit = self.devices.burst_limit(sender);
        let mut count = 0;
        let mut now = self.clock.now();
        while count < limit {
            if !self.intake.admits(now) {
                // The packets stay where they are.
                return Ok(());
            }
            if !self.read_packet(sender)? {
                break;
            }
            count += 1;
            now = self.clock.now();
            self.release(now);
        }
        self.devices.handle_burst(sender, count, limit);
        Ok(())
    }

    /// Reads one packet from a host into the path. False when none waits.
    fn read_packet(&mut self, sender: Sender) -> Result<bool> {
        let Sender { pair, side } = sender;
        let start = self.clock.now();
        let token = self.slab.take();
        let space = self.slab.space(token);
        let size = space.len();
        let Some((length, told)) = self.devices.read(sender, space, &mut self.rest)? else {
            self.slab.give_back(token);
            return Ok(false);
        };
        if length > size {
            self.slab.append(token, &self.rest[..length - size]);
        }
        let now = self.clock.now();
        let size = Bytes(length as u64);
        let headers = Headers::parse(&self.slab.space(token)[..length]);
        let Service { source, destination, dscp } = Service::parse(&self.slab.space(token)[..length]);
        let own = |at: u64| Instant::from_nanos(at.saturating_sub(self.clock.origin_ns()));
        self.slab.fill(token, length, Known { headers, sending: told.read(own), waker: told.waker(own) });
        self.accounts.handle_arrival(side, now, size);
        self.path.handle_packet(
            side,
            now,
            Arrival { size, flow: headers.flow(), source, destination, dscp, ecn: headers.ecn, buffer: token, pair },
        );
        self.intake.handle_read(side, self.clock.now().saturating_since(start));
        self.settle(side, now, Some(token));
        Ok(true)
    }

    fn release(&mut self, now: Instant) {
        for side in Side::BOTH {
            self.settle(side, now, None);
        }
    }

    /// Takes the packets out of the path by `now`. `entered` is the buffer of a packet just entered: it is captured
    /// before the leaving ones, with its verdict if the path dropped it on entry.
    fn settle(&mut self, side: Side, now: Instant, entered: Option<u32>) {
        let mut departures = std::mem::take(&mut self.departures);
        departures.extend(std::iter::from_fn(|| self.path.poll_packet(side, now)));
        if let Some(token) = entered {
            let verdict = departures.iter().find_map(|departure| match departure {
                Departure::Dropped(packet, cause)
                    if packet.buffer == token && packet.copy == 0 && !packet.is_background =>
                {
                    Some(DropCause::Path(*cause))
                }
                _ => None,
            });
            self.accounts.handle_entry(side, now, self.slab.bytes(token), verdict);
        }
        for departure in departures.drain(..) {
            if departure.packet().is_background {
                self.accounts.handle_background(side, &departure);
                continue;
            }
            match departure {
                Departure::Forwarded(packet) => self.deliver(side, &packet),
                Departure::Dropped(packet, cause) => self.drop_packet(side, &packet, DropCause::Path(cause)),
                Departure::Duplicated(copy) => {
                    self.slab.share(copy.buffer);
                    self.accounts.handle_duplicate(side);
                    continue;
                }
            }
            self.slab.give_back(departure.packet().buffer);
        }
        self.departures = departures;
    }

    fn deliver(&mut self, side: Side, packet: &Packet) {
        let known = self.slab.known(packet.buffer);
        if let Some(packets) = &mut self.undeliverable {
            packets[side as usize] += 1;
            self.accounts.handle_rest(side, packet, known);
            return;
        }
        self.backlog.wait_for_space();
        let actual = self.clock.now();
        let bytes = changed(packet, self.slab.bytes(packet.buffer), &mut self.rest);
        if packet.flipped_bit.is_none() {
            self.accounts.handle_release(side, known.headers, actual);
        }
        // A host that takes no packet (device down, memory full) is a drop by the device.
        let receiver = Sender { pair: packet.pair, side }.receiver();
        let taken = self.devices.write(receiver, bytes, Place(side, packet.index).number());
        self.intake.handle_write(self.clock.now().saturating_since(actual));
        self.accounts.handle_departure(side, packet, actual);
        if taken {
            self.accounts.handle_delivery(side, packet, known, bytes, actual);
        } else {
            self.drop_packet(side, packet, DropCause::Device);
        }
    }

    fn drop_packet(&mut self, side: Side, packet: &Packet, cause: DropCause) {
        if let (Some(mtu), None) = (packet.told_mtu, self.undeliverable) {
            self.answer(side, packet, Bytes(mtu.into()));
        }
        self.accounts.handle_drop(side, packet, self.slab.known(packet.buffer), cause);
    }

    /// Tells a packet's sender that it is larger than `mtu`.
    fn answer(&mut self, side: Side, packet: &Packet, mtu: Bytes) {
        let Some(message) = icmp_about(self.slab.bytes(packet.buffer), mtu) else { return };
        let taken = self.devices.write(Sender { pair: packet.pair, side }, &message, 0);
        self.accounts.handle_icmp(side, &message, self.clock.now(), taken);
    }

    /// Sleeps until a packet arrives, a packet is due, or another thread wakes this one.
    fn sleep(&mut self, drain_by: u64) -> Result<()> {
        let end = (drain_by != RUNNING).then(|| Instant::from_nanos(drain_by));
        let now = self.clock.now();
        let resumes = self.intake.resumes(now).filter(|_| self.devices.any_readable());
        let next = self.path.next_wakeup().into_iter().chain(end).chain(resumes).min();
        let alarm = next.map(|next| self.alarm.before(next, now));
        if alarm.is_some_and(|alarm| alarm <= now) {
            if self.yields {
                let _ = nix::sched::sched_yield();
            }
            self.devices.expect_packets();
            return Ok(());
        }
        let timeout = alarm.map(|alarm| alarm.saturating_since(now));
        let woken = match resumes {
            Some(_) => self.devices.wait_without_packets(timeout)?,
            None => self.devices.wait(self.clock, now, timeout)?,
        };
        if let (Woken::Timeout, Some(alarm)) = (woken, alarm) {
            self.alarm.handle_wakeup(self.clock.now().saturating_since(alarm));
        }
        Ok(())
    }

    /// Packets inside the path, with the undeliverable ones: forward, reverse.
    fn queued(&self) -> [u64; 2] {
        let ([forward, reverse], undeliverable) = (self.path.queued(), self.undeliverable.unwrap_or_default());
        [forward + undeliverable[0], reverse + undeliverable[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::Punctuality;
    use crosswind_ledger::{DeviceCounters, PayloadClock, Recorder};
    use crosswind_path::PathConfig;
    use crosswind_units::Seed;
    use nix::sys::eventfd::EfdFlags;
    use std::os::unix::net::UnixDatagram;

    const PACKET: [u8; 40] = [0; 40];

    /// A loop between two hosts, here sockets: a datagram is a packet.
    fn emulator(config: PathConfig) -> (ForwardingLoop, [UnixDatagram; 2]) {
        let setup = Setup {
            config,
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
        let emulator = ForwardingLoop::new(vec![devices], setup, Arc::new(wake), Arc::new(AtomicU64::new(0)));
        (emulator, hosts.try_into().unwrap())
    }

    #[test]
    fn a_packet_that_arrives_after_the_path_has_run_empty_stays_in_it() {
        let (mut emulator, [client, server]) = emulator(PathConfig::default());
        client.send(&PACKET).unwrap();
        emulator.forward().unwrap();
        assert_eq!(server.recv(&mut [0; 100]).unwrap(), PACKET.len());
        server.send(&PACKET).unwrap();
        drop((client, server));
        emulator.read_rest().unwrap();
        let report = emulator.report().unwrap();
        assert_eq!(report.queued, [0, 1]);
        let sent = DeviceCounters { sent: 1, sent_bytes: 40, ..DeviceCounters::default() };
        let balance =
            report.ledger.close(report.queued, sent, DeviceCounters { received: 1, received_bytes: 40, ..sent });
        assert_eq!(balance.mismatches(), [""; 0]);
        assert_eq!((balance.forward.delivered, balance.reverse.queued), (1, 1));
        assert_eq!([balance.forward.dropped.total(), balance.reverse.dropped.total()], [0, 0]);
    }

    #[test]
    fn a_copy_has_the_bytes_of_its_original_and_a_flipped_bit_is_in_one_of_them_alone() {
        let settings = serde_json::json!({"forward": {"duplicate": 1, "corrupt": 0.5}});
        let config = PathConfig::from_object(settings.as_object().unwrap()).unwrap();
        let (mut emulator, [client, server]) = emulator(config);
        server.set_nonblocking(true).unwrap();
        let sent: Vec<[u8; 40]> = (0..100_u8).map(|number| [number; 40]).collect();
        let mut received = Vec::new();
        for packet in &sent {
            client.send(packet).unwrap();
            assert!(emulator.read_packet(Sender { pair: 0, side: Side::Forward }).unwrap());
            let mut bytes = [0; 100];
            while let Ok(length) = server.recv(&mut bytes) {
                received.push(bytes[..length].to_vec());
            }
        }
        drop((client, server));
        let report = emulator.report().unwrap();
        let flipped = |(number, bytes): (usize, &Vec<u8>)| -> u32 {
            sent[number / 2].iter().zip(bytes).map(|(sent, got)| (sent ^ got).count_ones()).sum()
        };
        let flipped: Vec<u32> = received.iter().enumerate().map(flipped).collect();
        assert_eq!(flipped.len(), 200);
        assert!(flipped.iter().all(|bits| *bits <= 1));
        // Both of a pair, one of them, none: each occurs.
        let of_pairs: std::collections::BTreeSet<u32> = flipped.chunks(2).map(|pair| pair[0] + pair[1]).collect();
        assert_eq!(of_pairs.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
        let counters = |sent, received| DeviceCounters {
            sent,
            sent_bytes: sent * 40,
            received,
            received_bytes: received * 40,
            ..DeviceCounters::default()
        };
        let balance = report.ledger.close(report.queued, counters(100, 0), counters(0, 200));
        assert_eq!(balance.mismatches(), [""; 0]);
        assert_eq!((balance.forward.entered, balance.forward.duplicated, balance.forward.delivered), (100, 100, 200));
        assert_eq!(balance.forward.corrupted, flipped.iter().map(|bits| u64::from(*bits)).sum::<u64>());
    }
}
