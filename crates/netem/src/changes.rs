//! Changes of a path over time: the kernel is told other settings when they are due, counted from the first packet.

use super::built::{Built, SizeTable};
use super::plan::Stage;
use crosswind_host::Namespace;
use crosswind_host::PacketSocket;
use crosswind_host::netlink::{Netlink, Place};
use crosswind_host::realtime::sharpen_timers;
use crosswind_host::{HostError, Result};
use crosswind_path::{Side, Timeline};
use crosswind_units::Instant;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Serialize;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it looks whether the cell has ended before the first packet.
const WATCH_MS: u16 = 100;

/// One change of the settings of queueing disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QdiscChange {
    /// When it was due, counted from the first packet.
    pub due_ns: u64,
    /// How much later the kernel had the last of its settings.
    pub late_ns: u64,
}

/// The thread that updates the kernel.
pub struct Changing {
    thread: JoinHandle<Result<Vec<QdiscChange>>>,
    /// Dropped when the cell has ended.
    running: Sender<()>,
}

impl Changing {
    /// Waits for the first packet from a host, and from then on changes the settings of `built`.
    pub fn start(built: Arc<Built>, timeline: Timeline, hosts: [&Namespace; 2]) -> Result<Self> {
        let hosts = hosts.map(|host| host.run(PacketSocket::open));
        let [client, server] = hosts;
        let sockets = [client?, server?];
        let connect = |namespace: &Namespace| namespace.run(Netlink::connect);
        let netlinks = built.namespaces.iter().map(connect).collect::<Result<Vec<_>>>()?;
        let (running, ended) = channel();
        let thread = std::thread::spawn(move || {
            sharpen_timers();
            let Some(origin_ns) = first_packet(&sockets, &ended)? else { return Ok(Vec::new()) };
            drop(sockets);
            follow(&built, &timeline, &netlinks, origin_ns, &ended)
        });
        Ok(Self { thread, running })
    }

    /// Ends the changes, and returns them.
    pub fn finish(self) -> Result<Vec<QdiscChange>> {
        drop(self.running);
        let panicked = || Err(HostError::unsupported("the thread that changes queueing disciplines", "panicked"));
        self.thread.join().unwrap_or_else(|_| panicked())
    }
}

/// When the first packet was sent, on the monotonic clock; none where the cell ended before.
fn first_packet(sockets: &[PacketSocket; 2], ended: &Receiver<()>) -> Result<Option<u64>> {
    let failed = |cause: Errno| HostError::new("cannot wait for the first packet", cause);
    let mut header = [0; 1];
    loop {
        let mut watched = sockets.each_ref().map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN));
        match poll(&mut watched, PollTimeout::from(WATCH_MS)) {
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => {
                let readable = watched.map(|fd| fd.any().unwrap_or_default());
                for (socket, _) in sockets.iter().zip(readable).filter(|(_, readable)| *readable) {
                    if let Some(packet) = socket.receive(&mut header)? {
                        // The kernel stamps packets by the wall clock.
                        let passed = now_ns(ClockId::CLOCK_REALTIME).saturating_sub(packet.at_ns);
                        return Ok(Some(now_ns(ClockId::CLOCK_MONOTONIC).saturating_sub(passed)));
                    }
                }
            }
            Err(cause) => return Err(failed(cause)),
        }
        if has_ended(ended, Duration::ZERO) {
            return Ok(None);
        }
    }
}

/// Applies each change when it is due, until none is left or the cell has ended.
fn follow(
    built: &Built,
    timeline: &Timeline,
    netlinks: &[Netlink],
    origin_ns: u64,
    ended: &Receiver<()>,
) -> Result<Vec<QdiscChange>> {
    let mut changes = Vec::new();
    let mut next = timeline.at(Instant::ZERO).1;
    while let Some(due) = next {
        let due_ns = due.as_nanos();
        let late_ns = || now_ns(ClockId::CLOCK_MONOTONIC).saturating_sub(origin_ns + due_ns);
        let left = (origin_ns + due_ns).saturating_sub(now_ns(ClockId::CLOCK_MONOTONIC));
        if has_ended(ended, Duration::from_nanos(left)) {
            break;
        }
        let (hops, following) = timeline.at(due);
        if built.change(&hops, changes.len() as u64 + 1, netlinks)? {
            changes.push(QdiscChange { due_ns, late_ns: late_ns() });
        }
        next = following;
    }
    Ok(changes)
}

/// Whether the cell ends within some time.
fn has_ended(ended: &Receiver<()>, within: Duration) -> bool {
    !matches!(ended.recv_timeout(within), Err(RecvTimeoutError::Timeout))
}

fn now_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| Duration::from(time).as_nanos() as u64)
}

impl Built {
    /// Sends the kernel the settings changed in `hops`, and reads them back; false if it has them already.
    fn change(&self, hops: &[crosswind_path::Hop], number: u64, netlinks: &[Netlink]) -> Result<bool> {
        let mut plan = self.plan();
        let mut next = plan.at(hops, number);
        let mut changed = Vec::new();
        for side in Side::BOTH {
            for number in 0..plan.side(side).len() {
                let (place, device) = self.place(side, number);
                let (before, after) = (&plan.side(side)[number], &mut next.side_mut(side)[number]);
                if before.change(after, &netlinks[place], device, self.mtu)? {
                    changed.push((side, number));
                }
            }
        }
        *plan = next;
        for (side, number) in &changed {
            let (place, device) = self.place(*side, *number);
            plan.side(*side)[*number].read(&netlinks[place], device, self.mtu)?;
        }
        Ok(!changed.is_empty())
    }
}

impl Stage {
    /// Sends the kernel the differences to `after`; unchanged disciplines keep their randomness.
    fn change(&self, after: &mut Self, netlink: &Netlink, device: &str, mtu: u32) -> Result<bool> {
        let mut any = false;
        for ((place, before), after) in (0..).map(Place).zip(&self.disciplines).zip(&mut after.disciplines) {
            if after.discipline.does_the_same_as(&before.discipline) {
                after.discipline = before.discipline.clone();
                continue;
            }
            any = true;
            let kind = after.discipline.kind();
            if let Some(class) = after.discipline.encode_class() {
                netlink.set_class(device, place, kind, class, true)?;
            } else {
                // A device forgets its size table unless it is sent again.
                let sizes = (place.0 == 0).then(|| SizeTable::new(self.counting, self.shift, mtu).encode());
                netlink.set_discipline(device, place, kind, after.discipline.encode(), sizes, true)?;
            }
        }
        Ok(any)
    }
}
