//! The namespaces between the hosts, and the disciplines on their devices: setup, readback and counts.

use super::discipline::{Discipline, attribute};
use super::plan::{Plan, Stage};
use crosswind_host::Namespace;
use crosswind_host::netlink::{Netlink, Place, QdiscCounters, QdiscReadback};
use crosswind_host::sockets;
use crosswind_host::sysctl;
use crosswind_host::{HostError, Result};
use crosswind_ledger::{DropCause, HopReport, Passed};
use crosswind_path::{Counting, Side, link, mtu};
use crosswind_units::Bytes;
use netlink_packet_route::route::RouteMetric;
use nix::errno::Errno;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A middle namespace's devices, named after the hosts they lead to.
pub const TO_CLIENT: &str = "client";
pub const TO_SERVER: &str = "server";
/// Every device's: none asks for another's, and all take packets to this.
pub const HARDWARE_ADDRESS: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// A device's count per packet beside IP.
pub const ETHERNET_HEADER: u64 = 14;
const TCA_STAB_BASE: u16 = 1;
const TCA_STAB_DATA: u16 = 2;

/// The namespaces between the hosts, the client's first, and their devices' stages.
pub struct Built {
    /// As the kernel has it now.
    pub plan: Mutex<Plan>,
    pub mtu: u32,
    pub namespaces: Vec<Namespace>,
}

/// One queueing discipline of the path: what the kernel was asked, which is what it made of it, and what it counted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QdiscReport {
    /// Which stage of the direction it is part of.
    pub stage: u64,
    /// Its kind and settings, as the kernel has them.
    #[serde(flatten)]
    pub discipline: Discipline,
    /// What it has counted, with what disciplines inside have.
    pub counters: QdiscCounters,
    /// Packets that it has marked (ECN).
    pub marked: u64,
}

/// One direction's packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideReport {
    /// The disciplines, in packet order.
    pub qdiscs: Vec<QdiscReport>,
    /// Packets lost or held.
    pub passed: Passed,
}

impl Built {
    pub fn plan(&self) -> MutexGuard<'_, Plan> {
        // A panic while holding the lock may leave a plan the kernel does not have; reading back tells.
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets up the devices with their queueing disciplines, and reads these back.
    pub fn bring_up(&self, queue_length: u32) -> Result<()> {
        for (place, namespace) in self.namespaces.iter().enumerate() {
            let devices = [(Side::Forward, TO_SERVER), (Side::Reverse, TO_CLIENT)];
            namespace.run(|| {
                let netlink = Netlink::connect()?;
                for (side, device) in devices {
                    netlink.configure(device, self.mtu, queue_length, false)?;
                    if let Some(stage) = self.stage(side, place) {
                        stage.apply(&netlink, device, self.mtu)?;
                    }
                }
                sysctl::set("net.ipv4.ip_forward", "1")?;
                // On a device with multicast, this tells its neighbours about a router. A kernel without IPv6 has
                // nothing to forward.
                let _ = sysctl::set("net.ipv6.conf.all.forwarding", "1");
                // Every sender of a packet too large gets a message.
                for unlimited in ["net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit"] {
                    let _ = sysctl::set(unlimited, "0");
                }
                devices.into_iter().try_for_each(|(_, device)| netlink.set_up(device, true))
            })?;
        }
        Ok(())
    }

    /// Waits until the devices send, and makes the way from host to host.
    pub fn route(&self, client: IpAddr, server: IpAddr) -> Result<()> {
        for (place, namespace) in self.namespaces.iter().enumerate() {
            let ways = [(Side::Reverse, TO_CLIENT, client), (Side::Forward, TO_SERVER, server)];
            for (side, device, to) in ways {
                let mtu = self.stage(side, place).and_then(|stage| stage.mtu);
                namespace.run(|| {
                    let netlink = Netlink::connect()?;
                    netlink.wait_until_sending(device)?;
                    netlink.add_route(device, to, None, mtu.map(RouteMetric::Mtu).into_iter().collect())
                })?;
            }
        }
        Ok(())
    }

    pub fn read_side(&self, side: Side) -> Result<SideReport> {
        let mut report = SideReport::default();
        report.passed.hops = vec![HopReport::default(); self.plan().hops()];
        // It does not change while it is read.
        let plan = self.plan();
        for (number, stage) in plan.side(side).iter().enumerate() {
            let (place, device) = self.place(side, number);
            let namespace = &self.namespaces[place];
            let incoming = if device == TO_SERVER { TO_CLIENT } else { TO_SERVER };
            let (found, arrived) = namespace.run(|| {
                let netlink = Netlink::connect()?;
                Ok((stage.read(&netlink, device, self.mtu)?, netlink.counters(incoming)?.received))
            })?;
            let inner = found.iter().skip(1).map(|found| found.counters.dropped).chain([0]);
            for ((applied, found), inner) in stage.disciplines.iter().zip(&found).zip(inner) {
                let extra = applied.discipline.extra(&found.statistics);
                let own = found.counters.dropped.saturating_sub(inner);
                let full = extra.overlimit.min(own);
                let cause = applied.cause.map_or(DropCause::Device, DropCause::Path);
                let hop = &mut report.passed.hops[usize::from(applied.hop)];
                hop.dropped.add(cause, own - full);
                hop.dropped.add(DropCause::Path(link::QUEUE_FULL), full);
                hop.marked += extra.marked;
                report.passed.corrupts |= matches!(&applied.discipline, Discipline::Netem(netem) if netem.corrupt > 0);
                let counters = stage.in_bytes(found.counters);
                let discipline = applied.discipline.clone();
                report.qdiscs.push(QdiscReport { stage: number as u64, discipline, counters, marked: extra.marked });
            }
            if let Some(outer) = found.first().map(|outer| outer.counters) {
                report.passed.queued += outer.queued;
                if stage.duplicates {
                    report.passed.duplicated += (outer.sent + outer.dropped + outer.queued).saturating_sub(arrived);
                }
            }
            if stage.mtu.is_some() {
                let told = namespace.run(|| Ok(sockets::too_big()))?;
                report.passed.hops[usize::from(stage.hop)].dropped.add(DropCause::Path(mtu::MTU), told.dropped);
                report.passed.icmp += told.icmp;
                report.passed.icmp_bytes += told.icmp_bytes;
            }
        }
        Ok(report)
    }

    fn stage(&self, side: Side, place: usize) -> Option<Stage> {
        let number = side.pick(place, self.namespaces.len() - 1 - place);
        self.plan().side(side).get(number).cloned()
    }

    /// A stage's namespace and device.
    pub fn place(&self, side: Side, number: usize) -> (usize, &'static str) {
        side.pick((number, TO_SERVER), (self.namespaces.len() - 1 - number, TO_CLIENT))
    }
}

impl Stage {
    fn apply(&self, netlink: &Netlink, device: &str, mtu: u32) -> Result<()> {
        for (place, applied) in (0..).map(Place).zip(&self.disciplines) {
            let discipline = &applied.discipline;
            let kind = discipline.kind();
            let sizes = (place.0 == 0).then(|| SizeTable::new(self.counting, self.shift, mtu).encode());
            netlink
                .set_discipline(device, place, kind, discipline.encode(), sizes, false)
                .map_err(|error| lacking(kind, error))?;
            if let Some(class) = discipline.encode_class() {
                netlink.set_class(device, place, kind, class, false)?;
            }
        }
        self.read(netlink, device, mtu).map(|_| ())
    }

    /// The kernel's version of its disciplines, with counts, the outer one first.
    ///
    /// # Errors
    /// If they differ from the request.
    pub fn read(&self, netlink: &Netlink, device: &str, mtu: u32) -> Result<Vec<QdiscReadback>> {
        if self.disciplines.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = netlink.qdiscs(device)?;
        // The queue inside a token bucket is one of its own to the kernel; the bucket's counts include it.
        found.truncate(self.disciplines.len());
        let sizes = found.first().map(|outer| outer.sizes.clone());
        let decode = |found: &QdiscReadback| Discipline::decode(&found.kind, &found.options, found.class.as_deref());
        let same = found.len() == self.disciplines.len()
            && found
                .iter()
                .zip(&self.disciplines)
                .all(|(found, asked)| decode(found).is_some_and(|found| found.is_as_asked(&asked.discipline)))
            && sizes.flatten().is_some_and(|sizes| sizes == SizeTable::new(self.counting, self.shift, mtu).base());
        if !same {
            let found: Vec<_> = found.iter().map(|found| (&found.kind, decode(found))).collect();
            return Err(HostError::unsupported(
                format!("cannot set up {device} as asked: {:?}", self.disciplines),
                format!("the kernel made it {found:?}"),
            ));
        }
        Ok(found)
    }

    /// The counters; their bytes are scaled as the kernel's packet sizes.
    const fn in_bytes(&self, counters: QdiscCounters) -> QdiscCounters {
        QdiscCounters {
            sent_bytes: counters.sent_bytes >> self.shift,
            queued_bytes: counters.queued_bytes >> self.shift,
            ..counters
        }
    }
}

/// The error for a discipline unknown to the kernel.
fn lacking(kind: &str, error: HostError) -> HostError {
    if error.cause != Errno::ENOENT.desc().to_lowercase() {
        return error;
    }
    HostError::unsupported("the backend netem cannot emulate the path", format!("this kernel has no {kind}"))
        .hint(format!("virtual time has it: --clock virtual (or modprobe sch_{kind}, where there is such a module)"))
}

/// The kernel's packet sizes; it sees the Ethernet header too.
pub struct SizeTable {
    /// Bytes occupied by IP packets of 0, 1, 2, .. bytes; empty if the same.
    occupied: Vec<u16>,
    /// By how many bits the kernel takes it to be larger.
    shift: u8,
}

impl SizeTable {
    pub fn new(counting: Counting, shift: u8, mtu: u32) -> Self {
        let occupied = |size| counting.occupied(Bytes(size)).0 as u16;
        let is_itself = counting == Counting::IP && shift == 0;
        Self { occupied: if is_itself { Vec::new() } else { (0..=u64::from(mtu)).map(occupied).collect() }, shift }
    }

    /// As a request's `TCA_STAB`.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.base();
        if !self.occupied.is_empty() {
            let data: Vec<u8> = self.occupied.iter().flat_map(|size| size.to_ne_bytes()).collect();
            attribute(&mut bytes, TCA_STAB_DATA, &data);
        }
        bytes
    }

    /// The kernel's report of it: all but the table itself.
    fn base(&self) -> Vec<u8> {
        // struct tc_sizespec: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize.
        let overhead = -(ETHERNET_HEADER as i32);
        let spec = [u32::from_ne_bytes([0, self.shift, 0, 0]), overhead as u32, 0, 0, 0, self.occupied.len() as u32];
        let mut bytes = Vec::new();
        attribute(&mut bytes, TCA_STAB_BASE, &spec.into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<_>>());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_told_what_a_packet_occupies() {
        let packets = SizeTable::new(Counting::IP, 0, 1500);
        assert_eq!((packets.encode(), packets.base().len()), (packets.base(), 28));
        assert_eq!(SizeTable::new(Counting::IP, 3, 1500).encode()[5], 3);
        let frames = SizeTable::new(Counting::ETHERNET, 0, 1500);
        assert_eq!((frames.occupied[40], frames.occupied[46], frames.occupied[1500]), (84, 84, 1538));
        assert_eq!(frames.encode().len(), 28 + 4 + 1501 * 2 + 2);
    }
}
