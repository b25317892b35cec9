//! The path by the kernel's own queueing disciplines: client - veth - middle namespaces - veth - server. A middle
//! namespace forwards packets; each of its two devices applies one stage of one direction to outgoing packets.

mod built;
mod changes;
mod discipline;
mod plan;

pub use built::{ETHERNET_HEADER, QdiscReport, SideReport};
pub use changes::QdiscChange;
pub use discipline::Discipline;
pub use plan::{Plan, Stage};

use built::{Built, HARDWARE_ADDRESS, TO_CLIENT, TO_SERVER};
use changes::Changing;
use crosswind_host::netlink::Netlink;
use crosswind_host::{HostError, Middle, Namespace, Result, ethtool};
use crosswind_ledger::Passed;
use crosswind_path::{PathConfig, Side, Timeline};
use crosswind_units::Seed;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, OnceLock};

/// The network between the hosts.
pub struct Netem {
    built: Arc<Built>,
    timeline: Option<Timeline>,
    changing: Option<Changing>,
    sides: [SideReport; 2],
    report: Arc<OnceLock<NetemReport>>,
}

/// The disciplines' work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetemReport {
    /// Forward, reverse.
    pub sides: [SideReport; 2],
    /// How their settings changed.
    pub changes: Vec<QdiscChange>,
}

impl Netem {
    /// For packets of at most `mtu` bytes. Its report is there once it has ended.
    pub fn new(path: &PathConfig, mtu: u32, seed: Seed) -> Result<(Self, Arc<OnceLock<NetemReport>>)> {
        let plan = Plan::new(path, mtu, seed)
            .map_err(|error| HostError::unsupported("cannot build the path", error.to_string()))?;
        let report = Arc::default();
        let netem = Self {
            built: Arc::new(Built { plan: Mutex::new(plan), mtu, namespaces: Vec::new() }),
            timeline: (!path.changes.is_empty()).then(|| path.timeline(seed)),
            changing: None,
            sides: Default::default(),
            report: Arc::clone(&report),
        };
        Ok((netem, report))
    }
}

impl Middle for Netem {
    fn connect(&mut self, client: &Namespace, server: &Namespace, device: &'static str) -> Result<()> {
        let count = self.built.plan().namespaces();
        let namespaces: Vec<_> = (0..count).map(|_| Namespace::new()).collect::<Result<_>>()?;
        let chain: Vec<_> = [client].into_iter().chain(&namespaces).chain([server]).collect();
        for (number, ends) in chain.windows(2).enumerate() {
            let [left, right] = *ends else { continue };
            let name = if number == 0 { device } else { TO_SERVER };
            let peer = if number == namespaces.len() { device } else { TO_CLIENT };
            let descriptor = right.as_raw_fd();
            left.run(move || Netlink::connect()?.add_veth(name, peer, descriptor, Some(HARDWARE_ADDRESS)))?;
            left.run(move || ethtool::offloads_off(name))?;
            right.run(move || ethtool::offloads_off(peer))?;
        }
        let built = Built { plan: Mutex::new(self.built.plan().clone()), mtu: self.built.mtu, namespaces };
        self.built = Arc::new(built);
        Ok(())
    }

    fn bring_up(&self, queue_length: u32, client: IpAddr, server: IpAddr) -> Result<()> {
        self.built.bring_up(queue_length)?;
        self.built.route(client, server)
    }

    fn follow(&mut self, hosts: [&Namespace; 2]) -> Result<()> {
        let built = Arc::clone(&self.built);
        self.changing = self.timeline.take().map(|timeline| Changing::start(built, timeline, hosts)).transpose()?;
        Ok(())
    }

    fn read(&mut self) -> Result<[Passed; 2]> {
        self.sides = [self.built.read_side(Side::Forward)?, self.built.read_side(Side::Reverse)?];
        Ok(self.sides.each_ref().map(|side| side.passed.clone()))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let changes = self.changing.map(Changing::finish).transpose()?;
        let _ = self.report.set(NetemReport { sides: self.sides, changes: changes.unwrap_or_default() });
        Ok(())
    }
}
