//! Requests to rtnetlink, in the calling thread's namespace, one at a time.

use crate::error::{HostError, Result};
use crosswind_ledger::DeviceCounters;
use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, Nla,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption, TcStats2};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

/// The kernel's own steps are its workers': at once on an idle machine, some tens of milliseconds later on a busy one.
const KERNEL_DEADLINE: Duration = Duration::from_secs(10);

/// The kernel's largest datagram: 32 KiB for a list; one device, route or discipline has less.
const LARGEST_ANSWER: usize = 64 * 1024;

/// linux/rtnetlink.h
const TCA_OPTIONS: u16 = 2;

/// Where a queueing discipline goes: 0 is the device itself, each other number inside the one before.
#[derive(Clone, Copy)]
pub struct Place(pub u16);

impl Place {
    const fn handle(self) -> TcHandle {
        TcHandle { major: self.0 + 1, minor: 0 }
    }

    const fn parent(self) -> TcHandle {
        if self.0 == 0 { TcHandle::ROOT } else { TcHandle { major: self.0, minor: 1 } }
    }

    /// The one class of this discipline, if it has classes.
    const fn class(self) -> TcHandle {
        TcHandle { major: self.0 + 1, minor: 1 }
    }
}

/// A queueing discipline, as the kernel has it.
pub struct QdiscReadback {
    /// As the kernel names it.
    pub kind: String,
    /// Its settings.
    pub options: Vec<u8>,
    /// Its class's options.
    pub class: Option<Vec<u8>>,
    /// The sizes that it takes packets to have (tc-stab(8)).
    pub sizes: Option<Vec<u8>>,
    /// What it has counted, with what those inside have.
    pub counters: QdiscCounters,
    /// Its own counts.
    pub statistics: Vec<u8>,
}

/// What a queueing discipline has counted: with what those inside have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QdiscCounters {
    /// Packets that it has handed on.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that it has dropped.
    pub dropped: u64,
    /// How often packets had to wait for the rate, or found no room.
    pub overlimits: u64,
    /// Packets that it holds.
    pub queued: u64,
    /// Their bytes.
    pub queued_bytes: u64,
}

impl QdiscReadback {
    fn new(message: TcMessage) -> Self {
        let mut found = Self {
            kind: String::new(),
            options: Vec::new(),
            class: None,
            sizes: None,
            counters: QdiscCounters::default(),
            statistics: Vec::new(),
        };
        for attribute in message.attributes {
            match attribute {
                TcAttribute::Kind(kind) => found.kind = kind,
                TcAttribute::Options(options) => found.options = bytes_of(&options),
                TcAttribute::Stab(sizes) => found.sizes = Some(sizes),
                TcAttribute::Stats2(counts) => {
                    for counts in &counts {
                        found.counters.read(counts);
                    }
                    found.statistics = counts.iter().find_map(own_statistics).unwrap_or_default();
                }
                _ => {}
            }
        }
        found
    }
}

/// The options' bytes, some of them parsed by the library.
fn bytes_of(options: &[TcOption]) -> Vec<u8> {
    if let [TcOption::Other(raw)] = options {
        let mut bytes = vec![0; raw.value_len()];
        raw.emit_value(&mut bytes);
        return bytes;
    }
    let mut bytes = vec![0; options.buffer_len()];
    options.emit(&mut bytes);
    bytes
}

fn own_statistics(counts: &TcStats2) -> Option<Vec<u8>> {
    let TcStats2::App(statistics) = counts else { return None };
    let mut bytes = vec![0; statistics.buffer_len()];
    statistics.emit(&mut bytes);
    Some(bytes)
}

impl QdiscCounters {
    fn read(&mut self, counts: &TcStats2) {
        match counts {
            TcStats2::Basic(basic) => (self.sent, self.sent_bytes) = (basic.packets.into(), basic.bytes),
            TcStats2::Queue(queue) => {
                (self.queued, self.queued_bytes) = (queue.qlen.into(), queue.backlog.into());
                (self.dropped, self.overlimits) = (queue.drops.into(), queue.overlimits.into());
            }
            _ => {}
        }
    }
}

/// A connection to rtnetlink.
pub struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Connects, in the calling thread's namespace.
    pub fn connect() -> Result<Self> {
        let open = || {
            let socket = Socket::new(NETLINK_ROUTE)?;
            // This gives it an address as well.
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        Ok(Self { socket: open().map_err(|e: std::io::Error| HostError::new("cannot open a netlink socket", e))? })
    }

    /// The device's index.
    pub fn index(&self, name: &str) -> Result<u32> {
        Ok(self.link(name)?.header.index)
    }

    /// Makes a veth pair: `name` here, and `peer` in the namespace `peer_namespace`. With one `address` for both, the
    /// ends need no neighbour discovery; a device without it sends to its own address.
    pub fn add_veth(&self, name: &str, peer: &str, peer_namespace: RawFd, address: Option<[u8; 6]>) -> Result<()> {
        let address = address.map(|address| LinkAttribute::Address(address.into()));
        let mut other = LinkMessage::default();
        other.attributes = vec![LinkAttribute::IfName(peer.into()), LinkAttribute::NetNsFd(peer_namespace)];
        other.attributes.extend(address.clone());
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.into()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
            ]),
        ];
        link.attributes.extend(address);
        self.request("make a veth pair", RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sets a device's MTU and transmit queue length. Without `multicast` it sends no multicast packets, which would
    /// count as traffic, and asks nobody for an address.
    pub fn configure(&self, name: &str, mtu: u32, queue_length: u32, multicast: bool) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        if !multicast {
            link.header.change_mask = LinkFlags::Multicast | LinkFlags::Noarp;
            link.header.flags = LinkFlags::Noarp;
        }
        link.attributes = vec![LinkAttribute::Mtu(mtu), LinkAttribute::TxQueueLen(queue_length)];
        self.request(&format!("set the MTU of {name} to {mtu}"), RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Gives a device a queueing discipline with its default parameters.
    pub fn set_qdisc(&self, name: &str, qdisc: &str) -> Result<()> {
        let mut message = TcMessage::with_index(self.index(name)? as i32);
        message.header.parent = TcHandle::ROOT;
        message.attributes = vec![TcAttribute::Kind(qdisc.into())];
        let what = format!("give {name} the queueing discipline {qdisc}");
        let request = RouteNetlinkMessage::NewQueueDiscipline(message);
        self.request(&what, request, NLM_F_CREATE | NLM_F_REPLACE).map_err(|error| {
            error.hint(format!(
                "the kernel may lack it: others come with modprobe sch_{qdisc}, and virtual time has all of them"
            ))
        })
    }

    /// Gives a device a queueing discipline, or an outer discipline an inner one; an existing one is `changed`.
    pub fn set_discipline(
        &self,
        name: &str,
        place: Place,
        kind: &str,
        options: Vec<u8>,
        sizes: Option<Vec<u8>>,
        changed: bool,
    ) -> Result<()> {
        let mut message = self.discipline(name, kind, options)?;
        message.header.parent = place.parent();
        message.header.handle = place.handle();
        message.attributes.extend(sizes.map(TcAttribute::Stab));
        let what = format!("give {name} the queueing discipline {kind}");
        let flags = if changed { 0 } else { NLM_F_CREATE | NLM_F_EXCL };
        self.request(&what, RouteNetlinkMessage::NewQueueDiscipline(message), flags)
    }

    /// Gives a queueing discipline its one class; an existing one is `changed`.
    pub fn set_class(&self, name: &str, place: Place, kind: &str, options: Vec<u8>, changed: bool) -> Result<()> {
        let mut message = self.discipline(name, kind, options)?;
        message.header.parent = place.handle();
        message.header.handle = place.class();
        let what = format!("give the queueing discipline {kind} of {name} a class");
        let flags = if changed { 0 } else { NLM_F_CREATE | NLM_F_EXCL };
        self.request(&what, RouteNetlinkMessage::NewTrafficClass(message), flags)
    }

    fn discipline(&self, name: &str, kind: &str, options: Vec<u8>) -> Result<TcMessage> {
        let mut message = TcMessage::with_index(self.index(name)? as i32);
        let options = TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options));
        message.attributes = vec![TcAttribute::Kind(kind.into()), options];
        Ok(message)
    }

    /// A device's queueing disciplines, the outermost first, each with its one class.
    pub fn qdiscs(&self, name: &str) -> Result<Vec<QdiscReadback>> {
        let index = self.index(name)? as i32;
        let ask = |query: fn(TcMessage) -> RouteNetlinkMessage| {
            let what = format!("list the queueing disciplines of {name}");
            self.exchange(&what, query(TcMessage::with_index(index)), NLM_F_DUMP)
        };
        let mut found: Vec<_> = ask(RouteNetlinkMessage::GetQueueDiscipline)?
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewQueueDiscipline(message) if message.header.index == index => Some(message),
                _ => None,
            })
            .collect();
        found.sort_by_key(|message| (message.header.parent != TcHandle::ROOT, message.header.handle.major));
        let classes = ask(RouteNetlinkMessage::GetTrafficClass)?;
        let class_of = |handle: TcHandle| {
            classes.iter().find_map(|answer| match answer {
                RouteNetlinkMessage::NewTrafficClass(class) if class.header.handle.major == handle.major => {
                    class.attributes.iter().find_map(|attribute| match attribute {
                        TcAttribute::Options(options) => Some(bytes_of(options)),
                        _ => None,
                    })
                }
                _ => None,
            })
        };
        let readback = |message: TcMessage| {
            let class = class_of(message.header.handle);
            QdiscReadback { class, ..QdiscReadback::new(message) }
        };
        Ok(found.into_iter().map(readback).collect())
    }

    /// Sets a device up or down.
    pub fn set_up(&self, name: &str, up: bool) -> Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = self.index(name)?;
        link.header.change_mask = LinkFlags::Up;
        if up {
            link.header.flags = LinkFlags::Up;
        }
        self.request(&format!("set {name} up or down"), RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Gives a device an address with a full-length prefix, without duplicate address detection.
    pub fn add_address(&self, name: &str, address: IpAddr) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = bits(address);
        message.header.index = self.index(name)?;
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        if address.is_ipv6() {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.request(
            &format!("give {name} the address {address}"),
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE,
        )
    }

    /// A route to one address through a device, with metrics; `source` is this host's source address.
    pub fn add_route(&self, name: &str, to: IpAddr, source: Option<IpAddr>, metrics: Vec<RouteMetric>) -> Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = family(to);
        route.header.destination_prefix_length = bits(to);
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = if to.is_ipv4() { RouteScope::Link } else { RouteScope::Universe };
        route.header.kind = RouteType::Unicast;
        route.attributes =
            vec![RouteAttribute::Destination(RouteAddress::from(to)), RouteAttribute::Oif(self.index(name)?)];
        route.attributes.extend(source.map(|source| RouteAttribute::PrefSource(RouteAddress::from(source))));
        if !metrics.is_empty() {
            route.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.request(&format!("add a route to {to}"), RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Waits until an up device takes packets. The kernel gives it its queue by itself, some time after both ends of a
    /// pair are up; before that, it drops packets.
    pub fn wait_until_sending(&self, name: &str) -> Result<()> {
        let dropping = LinkAttribute::Qdisc("noop".into());
        wait_until(&format!("{name} takes no packets"), || Ok(!self.link(name)?.attributes.contains(&dropping)))
    }

    /// Waits until packets to the host's own `address` are taken in. For IPv6 the kernel adds the local route by
    /// itself, some time after the address; before that, it drops them.
    pub fn wait_until_local(&self, address: IpAddr) -> Result<()> {
        let mut query = RouteMessage::default();
        query.header.address_family = family(address);
        let wanted = RouteAttribute::Destination(RouteAddress::from(address));
        wait_until(&format!("there is no local route to {address}"), || {
            let routes = self.exchange("list routes", RouteNetlinkMessage::GetRoute(query.clone()), NLM_F_DUMP)?;
            Ok(routes.iter().any(|answer| {
                matches!(answer, RouteNetlinkMessage::NewRoute(route)
                    if route.header.kind == RouteType::Local && route.attributes.contains(&wanted))
            }))
        })
    }

    /// The metrics of the route to `to`, read back from the kernel.
    pub fn route_metrics(&self, to: IpAddr) -> Result<Vec<RouteMetric>> {
        let mut query = RouteMessage::default();
        query.header.address_family = family(to);
        let answers = self.exchange("list routes", RouteNetlinkMessage::GetRoute(query), NLM_F_DUMP)?;
        let wanted = RouteAttribute::Destination(RouteAddress::from(to));
        for answer in answers {
            if let RouteNetlinkMessage::NewRoute(route) = answer
                && route.header.table == RouteHeader::RT_TABLE_MAIN
                && route.attributes.contains(&wanted)
            {
                let metrics = route.attributes.into_iter().find_map(|attribute| match attribute {
                    RouteAttribute::Metrics(metrics) => Some(metrics),
                    _ => None,
                });
                return Ok(metrics.unwrap_or_default());
            }
        }
        Err(HostError::unsupported(format!("cannot read back the route to {to}"), "it is not there"))
    }

    /// A device's counters.
    pub fn counters(&self, name: &str) -> Result<DeviceCounters> {
        let link = self.link(name)?;
        link.attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Stats64(stats) => Some(DeviceCounters {
                    sent: stats.tx_packets,
                    sent_bytes: stats.tx_bytes,
                    received: stats.rx_packets,
                    received_bytes: stats.rx_bytes,
                    dropped_sending: stats.tx_dropped,
                    dropped_receiving: stats.rx_dropped,
                }),
                _ => None,
            })
            .ok_or_else(|| {
                HostError::unsupported(format!("cannot read the counters of {name}"), "the kernel gave none")
            })
    }

    /// A device's settings, read back from the kernel.
    pub fn device(&self, name: &str) -> Result<BTreeMap<String, String>> {
        let link = self.link(name)?;
        Ok(link
            .attributes
            .iter()
            .filter_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(("mtu_bytes".to_owned(), mtu.to_string())),
                LinkAttribute::TxQueueLen(packets) => Some(("queue_packets".to_owned(), packets.to_string())),
                LinkAttribute::Qdisc(name) => Some(("qdisc".to_owned(), name.clone())),
                _ => None,
            })
            .collect())
    }

    fn link(&self, name: &str) -> Result<LinkMessage> {
        let mut query = LinkMessage::default();
        query.attributes = vec![LinkAttribute::IfName(name.into())];
        let what = format!("look up the device {name}");
        let answers = self.exchange(&what, RouteNetlinkMessage::GetLink(query), 0)?;
        answers
            .into_iter()
            .find_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(link) => Some(link),
                _ => None,
            })
            .ok_or_else(|| HostError::unsupported(format!("cannot {what}"), "no answer"))
    }

    fn request(&self, what: &str, message: RouteNetlinkMessage, flags: u16) -> Result<()> {
        self.exchange(what, message, flags | NLM_F_ACK).map(|_| ())
    }

    fn exchange(&self, what: &str, message: RouteNetlinkMessage, flags: u16) -> Result<Vec<RouteNetlinkMessage>> {
        let failed = |cause: std::io::Error| HostError::new(format!("cannot {what}"), cause);
        let garbled = |cause: String| HostError::unsupported(format!("cannot {what}"), cause);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(failed)?;

        let mut answers = Vec::new();
        loop {
            let mut bytes = Vec::with_capacity(LARGEST_ANSWER);
            self.socket.recv(&mut bytes, 0).map_err(failed)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let answer =
                    NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map_err(|e| garbled(e.to_string()))?;
                // Messages are padded to four bytes.
                let length = (answer.header.length as usize).next_multiple_of(4).clamp(1, rest.len());
                rest = &rest[length..];
                match answer.payload {
                    NetlinkPayload::Error(error) if error.code.is_some() => return Err(failed(error.to_io())),
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    _ => {}
                }
            }
            if flags & (NLM_F_DUMP | NLM_F_ACK) == 0 {
                return Ok(answers);
            }
        }
    }
}

/// Waits for the kernel's own steps. `problem`: the state until then.
fn wait_until(problem: &str, done: impl Fn() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !done()? {
        if started.elapsed() > KERNEL_DEADLINE {
            return Err(HostError::unsupported(problem, "the kernel has not seen to it within ten seconds"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

const fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}
