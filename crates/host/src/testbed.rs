//! Two hosts in two namespaces, and the path between them: the emulator, the kernel's queueing disciplines, or a wire. Through an emulator
//! there may be further pairs of hosts, each with an access link of its own.

use crate::backend::Backend;
use crate::clock::Clock;
use crate::emulator::{Emulator, EmulatorReport, KernelEmulator, KernelPath, Punctuality, Setup, TrafficCounters};
use crate::error::{HostError, Result};
use crate::ethtool;
use crate::guest::in_virtual_time;
use crate::home::Homes;
use crate::middle::Middle;
use crate::namespace::Namespace;
use crate::netlink::Netlink;
use crate::pair::Pair;
use crate::placement::{Cpus, Placement};
use crate::realtime;
use crate::settings::kernel::recorded_sysctls;
use crate::settings::{EmulatorPlace, HostConfig, Qdisc};
use crate::sockets::Counted;
use crate::sysctl;
use crate::tun::Tun;
use crosswind_ledger::{DeviceCounters, Passed, PayloadClock, Recorder};
use crosswind_path::PathConfig;
use crosswind_units::{Duration, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// The device's name on both hosts.
const DEVICE: &str = "path0";
/// A device's queue for the emulator, packets: more than any window, so the device itself drops none, and the most
/// newer kernels allow (6.12.117 refuses more).
const DEVICE_QUEUE: u32 = 32_767;

/// Address family of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4, in 198.18.0.0/15, the range for benchmarks (RFC 2544).
    #[default]
    Ipv4,
    /// IPv6, in `2001:2::/48`, the range for benchmarks (RFC 5180).
    Ipv6,
}

impl Family {
    /// The client's and the server's address in a pair of hosts, counted from 0.
    pub const fn addresses(self, pair: u8) -> (IpAddr, IpAddr) {
        match self {
            Self::Ipv4 => (IpAddr::V4(Ipv4Addr::new(198, 18, pair, 1)), IpAddr::V4(Ipv4Addr::new(198, 18, pair, 2))),
            Self::Ipv6 => {
                let pair = pair as u16;
                (
                    IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, pair, 1)),
                    IpAddr::V6(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, pair, 2)),
                )
            }
        }
    }
}

/// The hosts and the path to build.
pub struct TestbedSettings {
    /// The connection between the hosts.
    pub backend: Backend,
    /// Address family.
    pub family: Family,
    /// Largest IP packet.
    pub mtu: u32,
    /// The network of the backend netem.
    pub middle: Option<Box<dyn Middle>>,
    /// Both hosts' settings, resolved.
    pub host: HostConfig,
    /// Congestion control for sockets without one from their program or route; if none, the kernel's.
    pub congestion_control: Option<String>,
    /// The emulated network.
    pub path: PathConfig,
    /// Where the emulator's random decisions come from.
    pub seed: Seed,
    /// Processors for the threads.
    pub placement: Placement,
    /// A packet later than this counts as late while the cell runs.
    pub late_after: Duration,
    /// Packet records and captures.
    pub recorder: Recorder,
}

/// A host's settings, as read back from its kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Readback {
    /// Kernel settings of the namespace.
    pub sysctl: BTreeMap<String, String>,
    /// Metrics of the route to the other host.
    pub route: BTreeMap<String, String>,
    /// Device settings.
    pub device: BTreeMap<String, String>,
}

impl Readback {
    /// This machine as it is, without a particular route or device.
    pub fn of_this_machine() -> Self {
        Self { sysctl: recorded_sysctls(), ..Self::default() }
    }
}

/// The counts at the end of traffic; pairs are client, server. Empty if the hosts are separate machines.
#[derive(Default)]
pub struct TestbedReport {
    /// The emulator's report; none where there is none.
    pub report: Option<EmulatorReport>,
    /// The devices' counters.
    pub devices: [DeviceCounters; 2],
    /// Datagrams dropped at a full socket buffer.
    pub dropped_datagrams: [u64; 2],
    /// The host's retransmitted TCP segments, if its kernel counts them.
    pub retransmitted_segments: [Option<u64>; 2],
}

/// Pairs of hosts, connected by one path.
pub struct Testbed {
    /// The workload's, then one for each access link.
    pub pairs: Vec<Pair>,
    /// The threads' processors.
    pub cpus: Cpus,
    /// The cell's clock.
    pub clock: Clock,
    /// The settings, as read back: client, server.
    pub readback: [Readback; 2],
    payload_clock: Arc<PayloadClock>,
    punctuality: Arc<Punctuality>,
    traffic: Arc<TrafficCounters>,
    path: Connection,
    /// None if the hosts are separate machines, whose devices carry other traffic too.
    drain: Option<Duration>,
}

/// The network between the hosts.
enum Connection {
    Emulator(Emulator),
    KernelEmulator(KernelEmulator),
    Middle(Box<dyn Middle>),
    /// A wire, or an existing network.
    Nothing,
}

impl Testbed {
    /// Builds the hosts and the path between them. Packets can be sent when it returns.
    pub fn build(mut settings: TestbedSettings) -> Result<Self> {
        let cpus = Cpus::assign(settings.backend, &settings.placement);
        if !cpus.hosts.is_empty() {
            // Building takes milliseconds in the kernel, uninterrupted by real-time threads: not on an emulator's
            // processor.
            realtime::pin(&cpus.hosts)?;
        }
        let shared = Shared {
            clock: Clock::start(),
            payload_clock: Arc::new(PayloadClock::new()),
            punctuality: Arc::new(Punctuality::new(settings.late_after)),
            traffic: Arc::new(TrafficCounters::default()),
        };
        settings.host.raise_buffer_bounds()?;
        if settings.congestion_control.is_some() {
            allow_congestion_controls()?;
        }
        let further = settings.path.access.len() as u8;
        let pairs = (0..=further)
            .map(|pair| {
                let (client_address, server_address) = settings.family.addresses(pair);
                let (client, server, homes) = (Namespace::new()?, Namespace::new()?, Homes::default());
                let hosts = Pair { client, server, client_address, server_address, homes };
                for namespace in hosts.namespaces() {
                    namespace.run(|| prepare(&settings.host, settings.congestion_control.as_deref(), &cpus))?;
                }
                if pair > 0 {
                    hosts.client.run(|| use_own_ports(pair, further))?;
                }
                Ok(hosts)
            })
            .collect::<Result<Vec<_>>>()?;
        let Pair { client, server, client_address, server_address, .. } = pairs[0].clone();
        let multicast = settings.backend == Backend::Direct;
        let round_trip = settings.path.longest_round_trip();
        let (host, mtu) = (settings.host.clone(), settings.mtu);
        let mut path = match settings.backend {
            Backend::Network => return Err(HostError::unsupported("the network that is there", "cannot be built")),
            Backend::Direct => {
                connect_directly(&client, &server)?;
                Connection::Nothing
            }
            Backend::Netem => {
                let nothing = || HostError::unsupported("cannot build the path", "nothing connects the hosts");
                let mut middle = settings.middle.take().ok_or_else(nothing)?;
                middle.connect(&client, &server, DEVICE)?;
                Connection::Middle(middle)
            }
            Backend::Tun => start_emulator(&pairs, settings, &cpus, &shared)?,
        };
        for namespace in pairs.iter().flat_map(Pair::namespaces) {
            namespace.run(|| bring_up(mtu, multicast, host.default_qdisc))?;
        }
        if let Connection::Middle(middle) = &path {
            middle.bring_up(DEVICE_QUEUE, client_address, server_address)?;
        }
        let address = |own: IpAddr, peer: IpAddr| {
            let host = &host;
            move || address(host, own, peer)
        };
        let addressed = |pair: &Pair| {
            let (client, server) = (pair.client_address, pair.server_address);
            Ok([pair.client.run(address(client, server))?, pair.server.run(address(server, client))?])
        };
        let readback = addressed(&pairs[0])?;
        pairs[1..].iter().try_for_each(|pair| addressed(pair).map(drop))?;
        if let Connection::Middle(middle) = &mut path {
            middle.follow([&client, &server])?;
        }
        let Shared { clock, payload_clock, punctuality, traffic } = shared;
        Ok(Self {
            pairs,
            cpus,
            clock,
            payload_clock,
            punctuality,
            traffic,
            readback,
            path,
            drain: Some(Duration::from_nanos(2 * round_trip.as_nanos()) + Duration::from_millis(500)),
        })
    }

    /// This machine as it is, as one of two hosts on an existing network. Nothing is built or changed.
    pub fn of_this_machine(client_address: IpAddr, server_address: IpAddr) -> Result<Self> {
        let own = Namespace::of_this_process()?;
        Ok(Self {
            pairs: vec![Pair {
                client: own.clone(),
                server: own,
                client_address,
                server_address,
                homes: Homes::default(),
            }],
            cpus: Cpus { emulator: Vec::new(), hosts: Vec::new() },
            clock: Clock::start(),
            payload_clock: Arc::new(PayloadClock::new()),
            punctuality: Arc::new(Punctuality::new(Duration::ZERO)),
            traffic: Arc::new(TrafficCounters::default()),
            readback: [Readback::of_this_machine(), Readback::default()],
            path: Connection::Nothing,
            drain: None,
        })
    }

    /// Ends the traffic, and reads the devices' counters while the report still holds the devices.
    pub fn finish(self) -> Result<TestbedReport> {
        let Some(drain) = self.drain else { return Ok(TestbedReport::default()) };
        let pairs = self.pairs;
        let down = || {
            for namespace in pairs.iter().flat_map(Pair::namespaces) {
                namespace.run(|| Netlink::connect()?.set_up(DEVICE, false))?;
            }
            Ok(())
        };
        let both = || sums(&pairs, || Netlink::connect()?.counters(DEVICE), |a, b| a + b);
        let (report, devices) = match self.path {
            Connection::Emulator(emulator) => (Some(emulator.finish(drain, down)?), both()?),
            Connection::KernelEmulator(emulator) => (Some(emulator.finish(drain, down)?), both()?),
            Connection::Middle(mut middle) => {
                let (devices, _) = at_rest(|| Ok((both()?, middle.read()?)), all_accounted, drain)?;
                middle.finish()?;
                (None, devices)
            }
            Connection::Nothing => (None, at_rest(both, all_received, drain)?),
        };
        let counted = sums(&pairs, || Ok(Counted::read()), |a, b| a + b)?;
        let dropped_datagrams = counted.map(|host| host.dropped_datagrams);
        let retransmitted_segments = counted.map(|host| host.retransmitted_segments);
        Ok(TestbedReport { report, devices, dropped_datagrams, retransmitted_segments })
    }

    /// Whether an emulator is between the hosts.
    pub const fn is_emulated(&self) -> bool {
        matches!(self.path, Connection::Emulator(_) | Connection::KernelEmulator(_))
    }

    /// Each connection's first and last payload so far; empty without an emulator.
    pub fn payload_clock(&self) -> &PayloadClock {
        self.catch_up();
        &self.payload_clock
    }

    /// How punctual the emulator is so far.
    pub fn punctuality(&self) -> &Punctuality {
        self.catch_up();
        &self.punctuality
    }

    /// Packets and bytes sent into the path by the hosts so far; none without an emulator.
    pub fn traffic(&self) -> &Arc<TrafficCounters> {
        self.catch_up();
        &self.traffic
    }

    /// Books everything so far.
    fn catch_up(&self) {
        if let Connection::KernelEmulator(emulator) = &self.path {
            emulator.catch_up();
        }
    }
}

/// The clients' readings together, and the servers'.
fn sums<T: Send>(
    pairs: &[Pair],
    read: impl Fn() -> Result<T> + Copy + Send,
    add: impl Fn(T, T) -> T,
) -> Result<[T; 2]> {
    let first = pairs[0].read(read)?;
    pairs[1..].iter().try_fold(first, |[client, server], pair| {
        let [of_client, of_server] = pair.read(read)?;
        Ok([add(client, of_client), add(server, of_server)])
    })
}

/// The emulator's shared state.
struct Shared {
    clock: Clock,
    payload_clock: Arc<PayloadClock>,
    punctuality: Arc<Punctuality>,
    traffic: Arc<TrafficCounters>,
}

/// In virtual time, with a kernel of this cell alone, allows namespaces every congestion control. Call in the first
/// one.
fn allow_congestion_controls() -> Result<()> {
    if in_virtual_time() {
        let available = sysctl::get("net.ipv4.tcp_available_congestion_control")?;
        sysctl::set("net.ipv4.tcp_allowed_congestion_control", &available)?;
    }
    Ok(())
}

/// Sets a host's default congestion control. Call inside the namespace.
fn set_congestion_control(name: &str) -> Result<()> {
    const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
    if sysctl::get(DEFAULT)? == name {
        return Ok(());
    }
    sysctl::set(DEFAULT, name).map_err(|error| {
        let what = format!("cannot give programs {name} while a flow beside them has another congestion control");
        let hint = format!(
            "use virtual time, leave out the flow's, or let the machine allow it: sysctl net.ipv4.tcp_allowed_congestion_control lists {name} then"
        );
        HostError::unsupported(what, format!("this machine's kernel lets no namespace have it as its default ({error})")).hint(hint)
    })
}

/// Sets up a host's namespace before it has a device.
fn prepare(host: &HostConfig, congestion_control: Option<&str>, cpus: &Cpus) -> Result<()> {
    host.apply_sysctls()?;
    if let Some(name) = congestion_control {
        set_congestion_control(name)?;
    }
    if !cpus.emulator.is_empty() {
        // Receive packet steering: the hosts' kernel work runs on the hosts' processors, not on the emulator's.
        // Kernels before 6.3 lack the setting; then that work is the emulator's, as its fidelity will show.
        let _ = sysctl::set("net.core.rps_default_mask", &realtime::mask(&cpus.hosts));
    }
    Netlink::connect()?.set_up("lo", true)
}

/// Gives a further pair's client its own ports, below the first's: they identify connections. Call inside the
/// namespace.
fn use_own_ports(pair: u8, further: u8) -> Result<()> {
    const PORTS: std::ops::Range<u16> = 8192..32_768;
    let each = (PORTS.end - PORTS.start) / u16::from(further);
    let first = PORTS.start + u16::from(pair - 1) * each;
    sysctl::set("net.ipv4.ip_local_port_range", &format!("{first} {}", first + each - 1))
}

/// Connects the hosts by a veth pair without offloads.
fn connect_directly(client: &Namespace, server: &Namespace) -> Result<()> {
    let peer = server.as_raw_fd();
    client.run(move || Netlink::connect()?.add_veth(DEVICE, DEVICE, peer, None))?;
    client.run(|| ethtool::offloads_off(DEVICE))?;
    server.run(|| ethtool::offloads_off(DEVICE))
}

/// Gives each host a device, and starts the emulator between them.
fn start_emulator(pairs: &[Pair], settings: TestbedSettings, cpus: &Cpus, shared: &Shared) -> Result<Connection> {
    let place = settings.host.emulator;
    let setup = Setup {
        config: settings.path,
        seed: settings.seed,
        clock: shared.clock,
        mtu: settings.mtu as usize,
        cpus: cpus.emulator.clone(),
        host_cpus: if cpus.emulator.is_empty() { Vec::new() } else { cpus.hosts.clone() },
        watch: settings.placement.watch,
        recorder: settings.recorder,
        payload_clock: Arc::clone(&shared.payload_clock),
        punctuality: Arc::clone(&shared.punctuality),
        traffic: Arc::clone(&shared.traffic),
    };
    if place != Some(EmulatorPlace::Process) && in_virtual_time() {
        if let Some(path) = KernelPath::open(&setup)? {
            return KernelEmulator::start(path, pairs, DEVICE, setup).map(Connection::KernelEmulator);
        }
        if place == Some(EmulatorPlace::Kernel) {
            let problem = "has no path, or one of other sources than this program's";
            return Err(HostError::unsupported("the kernel of virtual time", problem)
                .hint("`make kernel` builds it; or leave out host.emulator"));
        }
    }
    let devices = pairs.iter().map(|pair| pair.read(|| Tun::create(DEVICE))).collect::<Result<_>>()?;
    Emulator::start(devices, setup).map(Connection::Emulator)
}

/// Configures a host's device and sets it up.
fn bring_up(mtu: u32, multicast: bool, qdisc: Option<Qdisc>) -> Result<()> {
    let netlink = Netlink::connect()?;
    netlink.configure(DEVICE, mtu, DEVICE_QUEUE, multicast)?;
    if let Some(qdisc) = qdisc {
        netlink.set_qdisc(DEVICE, qdisc.name())?;
    }
    netlink.set_up(DEVICE, true)
}

/// Gives a host its address and its route to the other host, once its device and its peer's are up, and reads
/// everything back. From then on it sends and receives.
fn address(host: &HostConfig, own: IpAddr, peer: IpAddr) -> Result<Readback> {
    let netlink = Netlink::connect()?;
    netlink.wait_until_sending(DEVICE)?;
    netlink.add_address(DEVICE, own)?;
    netlink.add_route(DEVICE, peer, Some(own), host.route_metrics())?;
    netlink.wait_until_local(own)?;
    Ok(Readback {
        sysctl: recorded_sysctls(),
        route: host.read_back_route(&netlink, peer)?,
        device: netlink.device(DEVICE)?,
    })
}

/// The counts once nothing changes any more and no packet is on its way, or after `limit`.
///
/// A connection's last packets may still wait in the kernel when its program has ended. The devices are not taken down
/// for this: IPv6 sends packets on its own, and the first device down would lose the other's.
fn at_rest<T: PartialEq>(
    mut read: impl FnMut() -> Result<T>,
    nothing_on_its_way: impl Fn(&T) -> bool,
    limit: Duration,
) -> Result<T> {
    let started = std::time::Instant::now();
    let mut before = read()?;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let now = read()?;
        if (now == before && nothing_on_its_way(&now)) || started.elapsed() >= limit.into() {
            return Ok(now);
        }
        before = now;
    }
}

/// Whether each device received every packet the other sent.
fn all_received([client, server]: &[DeviceCounters; 2]) -> bool {
    client.sent == server.received && server.sent == client.received
}

/// Whether no packet waits in the path.
fn all_accounted((_, sides): &([DeviceCounters; 2], [Passed; 2])) -> bool {
    sides.iter().all(|side| side.queued == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    fn counted(sent: u64, received: u64) -> DeviceCounters {
        DeviceCounters { sent, received, ..DeviceCounters::default() }
    }

    #[test]
    fn devices_are_at_rest_when_two_readings_agree_and_all_packets_were_received() {
        let reads = Cell::new(0);
        let script = [(3, 2), (3, 3), (4, 4), (4, 4), (5, 4)];
        let read = || {
            let (sent, received) = script[reads.replace(reads.get() + 1)];
            Ok([counted(sent, 7), counted(7, received)])
        };
        let rest = at_rest(read, all_received, Duration::from_secs(3600)).unwrap();
        assert_eq!((rest, reads.get()), ([counted(4, 7), counted(7, 4)], 4));
    }

    #[test]
    fn devices_that_never_come_to_rest_are_waited_for_up_to_a_limit() {
        let lost = || Ok([counted(4, 7), counted(7, 3)]);
        assert_eq!(at_rest(lost, all_received, Duration::ZERO).unwrap(), [counted(4, 7), counted(7, 3)]);
    }
}
