//! The path by the kernel's own queueing disciplines: client - veth - middle namespaces - veth - server. A middle namespace
//! forwards packets, and each of its two devices does one stage of one direction to what leaves through it.

mod built;
mod changes;
mod discipline;
mod plan;

pub use built::{ETHERNET_HEADER, QdiscReport, SideReport};
pub use changes::QdiscChange;
pub use discipline::Discipline;
pub use plan::{Plan, Stage};

use crate::error::Result;
use crate::ethtool;
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use built::{Built, HARDWARE_ADDRESS, TO_CLIENT, TO_SERVER};
use changes::Changing;
use crosswind_path::{Side, Timeline};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};

/// What lies between the hosts.
pub struct Middle {
    built: Arc<Built>,
    changing: Option<Changing>,
}

/// What the disciplines have done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MiddleReport {
    /// Forward, reverse.
    pub sides: [SideReport; 2],
    /// How their settings changed.
    pub changes: Vec<QdiscChange>,
}

impl Middle {
    /// Connects the hosts, whose device is `device`. Nothing is up yet.
    pub fn connect(plan: Plan, mtu: u32, client: &Namespace, server: &Namespace, device: &'static str) -> Result<Self> {
        let namespaces: Vec<_> = (0..plan.namespaces()).map(|_| Namespace::new()).collect::<Result<_>>()?;
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
        Ok(Self { built: Arc::new(Built { plan: Mutex::new(plan), mtu, namespaces }), changing: None })
    }

    /// Sets up the devices between the hosts with their queueing disciplines, and makes the way from host to host.
    pub fn bring_up(&self, queue_length: u32, client: IpAddr, server: IpAddr) -> Result<()> {
        self.built.bring_up(queue_length)?;
        self.built.route(client, server)
    }

    /// Changes the settings over time, from the first packet on that one of the hosts sends.
    pub fn follow(&mut self, timeline: Timeline, hosts: [&Namespace; 2]) -> Result<()> {
        self.changing = Some(Changing::start(Arc::clone(&self.built), timeline, hosts)?);
        Ok(())
    }

    /// What the disciplines of both directions have counted so far: forward, reverse.
    pub fn read(&self) -> Result<[SideReport; 2]> {
        Ok([self.built.read_side(Side::Forward)?, self.built.read_side(Side::Reverse)?])
    }

    /// Ends the changes; `sides` are what was counted.
    pub fn finish(self, sides: [SideReport; 2]) -> Result<MiddleReport> {
        let changes = self.changing.map(Changing::finish).transpose()?;
        Ok(MiddleReport { sides, changes: changes.unwrap_or_default() })
    }
}
