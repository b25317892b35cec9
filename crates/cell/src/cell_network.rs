//! The network between a cell's hosts: an emulator, queueing disciplines or a wire, built for it, or an existing
//! network.

use crate::flow::{instances, numbered, port};
use crate::network::{Capturing, RemoteFacts, RemoteServer};
use crate::{Cell, CellError, ErrorKind};
use crosswind_host::guest::in_virtual_time;
use crosswind_host::{Backend, EmulatorPlace, HostClock, HostConfig, Middle, Testbed, TestbedSettings, TickPhase};
use crosswind_ledger::Recorder;
use crosswind_netem::{Netem, NetemReport};
use crosswind_transport::TcpTotals;
use crosswind_transport::security::{Security, Sizes};
use crosswind_units::{Duration, Seed};
use crosswind_workload::FarServer;
use std::sync::{Arc, OnceLock};

/// The network between a cell's hosts, while it runs.
pub trait Network: Sync {
    /// Whether both hosts are built on this machine and have it to themselves.
    fn is_built(&self) -> bool;

    /// Whether the hosts' time is virtual. An error if the cell asks for another clock than there is.
    fn is_in_virtual_time(&self) -> Result<bool, CellError>;

    /// The hosts, connected; `recorder` gets the packets of an emulator.
    fn connect(&mut self, recorder: Recorder) -> Result<Testbed, CellError>;

    /// Begins its own captures.
    fn start_capture(&mut self) -> Result<(), CellError> {
        Ok(())
    }

    /// Both ends' certificates and trust for secure connections.
    fn security(&self) -> Result<Security, CellError>;

    /// Where the client's TCP connections are counted, if nothing else counts packets.
    fn tcp_totals(&self) -> Option<Arc<TcpTotals>> {
        None
    }

    /// The workload's server, if it is on another machine, and its port.
    fn server(&self) -> Option<(&dyn FarServer, u16)> {
        None
    }

    /// Where the server of the flow with this number listens.
    fn port_of_flow(&self, number: u16) -> u16 {
        port(number)
    }

    /// Its certificates and trust, if different from the workload's.
    fn security_of_flow(&self, _number: u16) -> Result<Option<Security>, CellError> {
        Ok(None)
    }

    /// Its server, likewise.
    fn server_of_flow(&self, _number: u16) -> Option<&dyn FarServer> {
        None
    }

    /// An error once the cell cannot end well any more.
    fn check(&self) -> Result<(), CellError> {
        Ok(())
    }

    /// The kernel's queueing disciplines' work, once the hosts are gone; none if they are not the path.
    fn netem(&self) -> Option<&NetemReport> {
        None
    }

    /// Facts about it once the workload has ended.
    fn finish(&mut self) -> Result<RemoteFacts, CellError> {
        Ok(RemoteFacts::default())
    }
}

/// The network for `cell`.
pub fn network_of(cell: &Cell) -> Result<Box<dyn Network + '_>, CellError> {
    Ok(match cell.path.backend {
        Backend::Network => {
            let far = RemoteServer::start(cell)?;
            let flows = numbered(&cell.flows).map(|(number, flow)| far.start_flow(cell, flow, number));
            let flows = flows.collect::<Result<_, _>>()?;
            Box::new(Real { cell, flows, far, tcp_totals: Arc::default(), capture: None })
        }
        Backend::Tun | Backend::Netem | Backend::Direct => Box::new(Built { cell, netem: None }),
    })
}

/// The emulator, queueing disciplines or a wire.
struct Built<'a> {
    cell: &'a Cell,
    netem: Option<Arc<OnceLock<NetemReport>>>,
}

impl Network for Built<'_> {
    fn is_built(&self) -> bool {
        true
    }

    fn is_in_virtual_time(&self) -> Result<bool, CellError> {
        let (wanted, is_virtual) = (self.cell.host.clock, in_virtual_time());
        let (there, hint) = match (wanted, is_virtual) {
            (HostClock::Real, true) => ("a kernel of virtual time", "start crosswind-cell on the machine itself"),
            (HostClock::Virtual, false) => {
                ("the machine's clock", "crosswind run starts such cells in a kernel of their own")
            }
            (HostClock::Auto, false) if self.cell.host.emulator == Some(EmulatorPlace::Kernel) => (
                "the machine's clock, which host.emulator does not go with",
                "set host.clock to virtual, or leave out host.emulator",
            ),
            (_, false) if self.cell.host.tick_phase == TickPhase::Seed => (
                "the machine's clock, on which a cell begins whenever it does",
                "set host.clock to virtual, or leave out host.tick_phase",
            ),
            _ => return Ok(is_virtual),
        };
        let message = format!("host.clock is {}, and here is {there}", wanted.name());
        Err(CellError::new(ErrorKind::Unsupported, message).hint(hint))
    }

    fn connect(&mut self, recorder: Recorder) -> Result<Testbed, CellError> {
        let cell = self.cell;
        for flow in &cell.flows {
            let asked = HostConfig { congestion_control: flow.congestion_control.clone(), ..HostConfig::default() };
            asked.check_kernel()?;
        }
        let mut middle: Option<Box<dyn Middle>> = None;
        if cell.path.backend == Backend::Netem {
            let (netem, report) = Netem::new(&cell.path.directions, cell.path.mtu_bytes, Seed(cell.seed))?;
            middle = Some(Box::new(netem));
            self.netem = Some(report);
        }
        Ok(Testbed::build(TestbedSettings {
            middle,
            backend: cell.path.backend,
            family: cell.path.family,
            mtu: cell.path.mtu_bytes,
            host: cell.host_of_routes(),
            congestion_control: cell.congestion_control_of_programs(),
            path: if cell.path.backend.is_emulated() { cell.path.emulated() } else { cell.path.directions.clone() },
            seed: Seed(cell.seed),
            placement: cell.placement.clone(),
            late_after: Duration::from_nanos(cell.budget.delay_error_p99_ns),
            recorder,
        })?)
    }

    fn netem(&self) -> Option<&NetemReport> {
        self.netem.as_ref()?.get()
    }

    fn security(&self) -> Result<Security, CellError> {
        let server = |pair: usize| self.cell.path.family.addresses(pair as u8).1;
        let addresses: Vec<_> = pairs_with_peers(self.cell).into_iter().map(server).collect();
        let sizes = if in_virtual_time() { Sizes::Constant } else { Sizes::AsTheyCome };
        Security::of_addresses(&addresses, sizes).map_err(|e| CellError::internal(e.to_string()))
    }
}

/// The pairs of hosts with peers.
fn pairs_with_peers(cell: &Cell) -> Vec<usize> {
    let of_workload = cell.workload.peers().any().then_some(0);
    let with_peers = instances(&cell.flows).filter(|(_, flow)| flow.workload.peers().any()).map(|(pair, _)| pair);
    let mut pairs: Vec<usize> = of_workload.into_iter().chain(with_peers).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// An existing network, with the server on another machine.
struct Real<'a> {
    cell: &'a Cell,
    /// The servers of the flows beside the workload; they end before its own.
    flows: Vec<RemoteServer>,
    far: RemoteServer,
    tcp_totals: Arc<TcpTotals>,
    capture: Option<Capturing>,
}

impl Real<'_> {
    /// The server of the flow with this number.
    fn flow(&self, number: u16) -> &RemoteServer {
        &self.flows[usize::from(number) - 1]
    }
}

impl Network for Real<'_> {
    fn is_built(&self) -> bool {
        false
    }

    /// It has its machines' clock, whichever that is.
    fn is_in_virtual_time(&self) -> Result<bool, CellError> {
        Ok(in_virtual_time())
    }

    /// No emulator would ever end waits for the recorder's packets: it goes at once.
    fn connect(&mut self, _recorder: Recorder) -> Result<Testbed, CellError> {
        let testbed = Testbed::of_this_machine(self.far.own_address, self.far.address.ip())?;
        for far in self.flows.iter_mut().chain([&mut self.far]) {
            far.set_origin(testbed.clock.origin_ns());
        }
        Ok(testbed)
    }

    fn start_capture(&mut self) -> Result<(), CellError> {
        self.capture = Capturing::start(self.cell, &self.far)?;
        Ok(())
    }

    fn security(&self) -> Result<Security, CellError> {
        self.far.security().map_err(|e| CellError::internal(e.to_string()))
    }

    fn tcp_totals(&self) -> Option<Arc<TcpTotals>> {
        Some(Arc::clone(&self.tcp_totals))
    }

    fn server(&self) -> Option<(&dyn FarServer, u16)> {
        Some((&self.far, self.far.address.port()))
    }

    fn port_of_flow(&self, number: u16) -> u16 {
        self.flow(number).address.port()
    }

    fn security_of_flow(&self, number: u16) -> Result<Option<Security>, CellError> {
        self.flow(number).security().map(Some).map_err(|e| CellError::internal(e.to_string()))
    }

    fn server_of_flow(&self, number: u16) -> Option<&dyn FarServer> {
        Some(self.flow(number))
    }

    fn check(&self) -> Result<(), CellError> {
        self.flows.iter().chain([&self.far]).try_for_each(RemoteServer::check)
    }

    fn finish(&mut self) -> Result<RemoteFacts, CellError> {
        self.flows.clear();
        let captured = self.capture.take().map(Capturing::finish).transpose()?;
        let mut facts = self.far.report(self.tcp_totals.report());
        facts.capture_missed += captured.map_or(0, |captured| captured.missed);
        Ok(facts)
    }
}
