//! A cell's result, as in its `finished` event.

use crate::Cell;
use crate::network::NetworkReport;
use crate::processor_time::Profile;
use crosswind_host::{EmulatorReport, Readback, Traffic, sysctl};
use crosswind_ledger::{
    DeviceCounters, DropCause, FidelityReport, LedgerReport, Observed, TimeReport, kernel_drops_in_words,
};
use crosswind_netem::{ETHERNET_HEADER, NetemReport as Disciplines, QdiscChange, QdiscReport};
use crosswind_transport::{Outcome, SocketReadback};
use crosswind_workload::{Measured, OutcomeCount, PeersReport, ProgramEnd, Sample, Warning};
use schemars::JsonSchema;
use serde::Serialize;

/// The results' schema.
const SCHEMA: &str = "crosswind.cell-result/1";

/// The result of a cell.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CellResult {
    /// Schema of the result.
    pub schema: &'static str,
    /// Name of the cell.
    pub id: String,
    /// Whether it can be used.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How the exchanges ended.
    pub samples: SampleCounts,
    /// What came of the flows beside the workload.
    pub flows: Vec<FlowReport>,
    /// What became of every packet; null on the network that is really there.
    pub ledger: Option<LedgerReport>,
    /// How close the emulation came to what was asked; null where there is no emulator.
    pub fidelity: Option<FidelityReport>,
    /// What the kernel made of the hosts' settings.
    pub readback: Hosts<HostReadback>,
    /// CPU time of the threads of the cell; null in virtual time, where computing takes no time.
    pub cpu: Option<CpuTimes>,
    /// What the hosts handed to the path; null where there is no emulator.
    pub traffic: Option<TrafficPhases>,
    /// Where the processor time of the hosts went; null where it was not sampled.
    pub profile: Option<Profile>,
    /// How long packets waited for the link; null where there is no emulator.
    pub queueing_ns: Option<Directions<TimeReport>>,
    /// The queueing disciplines of a path of the backend netem, in the order in which packets pass them: settings as the kernel has them, and counts;
    /// null elsewhere.
    pub netem: Option<NetemReport>,
    /// TCP segments that each host retransmitted, as its kernel has counted them: of every connection, handshakes included; null where it does not say.
    pub tcp_retransmits: Option<Hosts<u64>>,
    /// How the client program ended; null where there was none.
    pub program: Option<ProgramEnd>,
    /// Who the two ends were; null where both were Crosswind's own, or programs without the peer protocol.
    pub peers: Option<PeersReport>,
    /// What is known of the network that is really there; null elsewhere.
    pub network: Option<NetworkReport>,
    /// What the cell ran on.
    pub versions: Versions,
    /// How the process itself did.
    #[serde(flatten)]
    pub process: ProcessFacts,
}

/// Whether a result can be used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verdict {
    /// Whether the result can be used.
    pub valid: bool,
    /// Why it cannot.
    pub reasons: Vec<String>,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
}

/// How the process that ran a cell did.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProcessFacts {
    /// From the moment when the path was up until the workload had ended.
    pub elapsed_ns: u64,
    /// Whether the cell ran in virtual time.
    pub virtual_time: bool,
    /// Whether processors were kept from sleeping.
    pub processors_awake: bool,
    /// The most memory that the process held.
    pub peak_memory_bytes: Option<u64>,
}

/// How the exchanges ended.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SampleCounts {
    /// Exchanges in all.
    pub rows: u64,
    /// Exchanges that did what they should.
    pub ok: u64,
    /// The others.
    pub lost: u64,
    /// How the others ended, most frequent first.
    pub outcomes: Vec<OutcomeCount>,
}

/// What came of a flow.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FlowReport {
    /// Its number in the tables, from 1.
    pub flow: u16,
    /// Its name.
    pub name: String,
    /// What its server listened on.
    pub port: u16,
    /// When it began; null if the workload had ended before.
    pub began_ns: Option<u64>,
    /// When its clients were told to stop, or had done all.
    pub ended_ns: u64,
    /// How its exchanges ended.
    pub samples: SampleCounts,
    /// Exchanges that were under way when it was stopped, which are no samples.
    pub unfinished: u64,
    /// The client's socket, as the kernel has it.
    pub client_socket: Option<SocketReadback>,
    /// The server's.
    pub server_socket: Option<SocketReadback>,
}

/// Something of both hosts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Hosts<T> {
    /// The client's.
    pub client: T,
    /// The server's.
    pub server: T,
}

/// Something of both directions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Directions<T> {
    /// Client to server.
    pub forward: T,
    /// Server to client.
    pub reverse: T,
}

/// The queueing disciplines of both directions.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NetemReport {
    /// Client to server.
    pub forward: Vec<QdiscReport>,
    /// Server to client.
    pub reverse: Vec<QdiscReport>,
    /// When their settings changed.
    pub changes: Vec<QdiscChange>,
}

/// What the kernel made of one host's settings.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HostReadback {
    /// Of the namespace, the route and the device.
    #[serde(flatten)]
    pub host: Readback,
    /// Of a socket; null where the workload has none of ours.
    pub socket: Option<SocketReadback>,
}

/// CPU time of the threads of the cell.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(clippy::struct_field_names)] // the unit, as in every stored name
pub struct CpuTimes {
    /// Of the client's threads.
    pub client_ns: u64,
    /// Of the server's threads.
    pub server_ns: u64,
    /// Of the emulator's thread.
    pub emulator_ns: u64,
}

/// What the hosts handed to the path, by phase.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrafficPhases {
    /// Until every kept connection was open.
    pub setup: Traffic,
    /// After that.
    pub exchanges: Traffic,
}

/// What the cell ran on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Versions {
    /// Of this program.
    pub crosswind_cell: &'static str,
    /// Of the running kernel.
    pub kernel: String,
}

/// A cell's data after its run.
pub struct CellRun {
    pub network: Option<NetworkReport>,
    pub measured: Measured,
    pub flows: Vec<FlowReport>,
    pub report: Option<EmulatorReport>,
    pub netem: Option<Disciplines>,
    pub devices: [DeviceCounters; 2],
    pub readback: [Readback; 2],
    pub retransmitted_segments: [Option<u64>; 2],
    pub all_traffic: Traffic,
    pub profile: Option<Profile>,
    pub process: ProcessFacts,
}

impl CellResult {
    /// The result of `cell`. `observed` makes an emulation's measurements, given the packets dropped by the kernel.
    pub fn new(cell: &Cell, run: CellRun, observed: impl FnOnce(&EmulatorReport, u64) -> Observed) -> Self {
        let CellRun { measured, report, netem, devices: [client, server], readback, all_traffic, .. } = run;
        let samples = SampleCounts::of(&measured.samples, &measured);
        let emulator_ns = report.as_ref().map_or(0, |report| report.cpu_ns);
        let traffic = report.as_ref().map(|_| TrafficPhases::new(measured.setup.unwrap_or_default(), all_traffic));
        let mut reasons = Vec::new();
        let (ledger, fidelity, queueing_ns) = match report {
            None if run.network.is_some() => (None, None, None),
            None => {
                let ledger = match &netem {
                    Some(netem) => {
                        let passed = netem.sides.each_ref().map(|side| side.passed.clone());
                        LedgerReport::from_disciplines(client, server, passed, ETHERNET_HEADER)
                    }
                    None => LedgerReport::from_devices(client, server),
                };
                reasons.extend(kernel_drops_in_words(kernel_drops(&ledger)));
                (Some(ledger), None, None)
            }
            Some(report) => {
                let ledger = report.ledger.close(report.queued, client, server);
                let fidelity = FidelityReport::new(observed(&report, kernel_drops(&ledger)), cell.budget);
                let [forward, reverse] = report.queueing.map(|histogram| histogram.report());
                (Some(ledger), Some(fidelity), Some(Directions { forward, reverse }))
            }
        };
        reasons.extend(ledger.iter().flat_map(LedgerReport::mismatches));
        reasons.extend(fidelity.iter().flat_map(FidelityReport::reasons));
        let [client_readback, server_readback] = readback;
        let [client_socket, server_socket] = measured.sockets;
        let [client_again, server_again] = match &run.network {
            Some(network) => network.retransmitted_segments(),
            None => run.retransmitted_segments,
        };
        Self {
            schema: SCHEMA,
            id: cell.id.clone(),
            verdict: Verdict { valid: reasons.is_empty(), reasons, warnings: measured.warnings },
            samples,
            flows: run.flows,
            ledger,
            fidelity,
            readback: Hosts {
                client: HostReadback { host: client_readback, socket: client_socket },
                server: HostReadback { host: server_readback, socket: server_socket },
            },
            cpu: (!run.process.virtual_time).then_some(CpuTimes {
                client_ns: measured.cpu_ns[0],
                server_ns: measured.cpu_ns[1],
                emulator_ns,
            }),
            traffic,
            profile: run.profile,
            queueing_ns,
            netem: netem.map(|Disciplines { sides: [forward, reverse], changes }| NetemReport {
                forward: forward.qdiscs,
                reverse: reverse.qdiscs,
                changes,
            }),
            tcp_retransmits: client_again.zip(server_again).map(|(client, server)| Hosts { client, server }),
            program: measured.program,
            peers: measured.peers,
            network: run.network,
            versions: Versions {
                crosswind_cell: env!("CARGO_PKG_VERSION"),
                kernel: sysctl::get("kernel.osrelease").unwrap_or_default(),
            },
            process: run.process,
        }
    }
}

impl SampleCounts {
    /// For `samples`, with the reasons of failures in `measured`.
    pub fn of(samples: &[Sample], measured: &Measured) -> Self {
        let ok = samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count() as u64;
        let rows = samples.len() as u64;
        Self { rows, ok, lost: rows - ok, outcomes: measured.failures(samples) }
    }
}

impl TrafficPhases {
    fn new(setup: Traffic, all: Traffic) -> Self {
        Self { setup, exchanges: all - setup }
    }
}

fn kernel_drops(ledger: &LedgerReport) -> u64 {
    ledger.forward.dropped.count(DropCause::Device) + ledger.reverse.dropped.count(DropCause::Device)
}
