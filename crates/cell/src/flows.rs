//! Running a cell's flows beside the workload.

use crate::cell_network::Network;
use crate::flow::{Flow, instances};
use crate::gate::Gate;
use crate::result::{FlowReport, SampleCounts};
use crate::{Cell, CellError, ErrorKind};
use crosswind_host::{HostError, KeyLogs, Pair, Testbed, Threads};
use crosswind_transport::{Outcome, Settings};
use crosswind_units::{Duration, Instant, Seed};
use crosswind_workload::{Context, Ending, Measured, Progress, Sample, Warning, WorkloadConfig, WorkloadError};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread::ScopedJoinHandle;

/// The interval for packet counts by flow.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// Advice about a failed program beside a workload.
const OUTPUT_OF_FLOW: &str = "where the run is kept, all that it wrote is in the flow's folder of the cell";

/// A finished flow.
pub struct FlowOutcome {
    pub report: FlowReport,
    /// Whether it shares the path; a helper does not.
    pub shares: bool,
    pub samples: Vec<Sample>,
    /// Its ends' notes for readers.
    pub warnings: Vec<Warning>,
}

impl FlowOutcome {
    /// Why it achieved nothing, if so.
    pub fn failure(&self) -> Option<Warning> {
        let samples = &self.report.samples;
        let error = samples.outcomes.first().filter(|_| samples.ok == 0)?.first_error.as_ref()?;
        Some(Warning::flow_failed(&self.report.name, error))
    }
}

/// For flows without a common time, beside a workload of `elapsed`: the last to begin, and one that had ended before.
pub fn apart(flows: &[FlowOutcome], elapsed: Duration) -> Option<Warning> {
    let sharing = || flows.iter().filter(|it| it.shares);
    if let Some(never) = sharing().find(|it| it.report.began_ns.is_none()) {
        return Some(Warning::flows_apart(&never.report.name, None));
    }
    let last = sharing().max_by_key(|it| it.report.began_ns)?;
    let first = sharing().min_by_key(|it| it.report.ended_ns)?;
    let ended = first.report.ended_ns.min(elapsed.as_nanos());
    (Some(ended) <= last.report.began_ns).then(|| Warning::flows_apart(&last.report.name, Some(&first.report.name)))
}

/// A gate for a cell's programs with company.
pub fn gate_of(cell: &Cell, now: Instant) -> Gate {
    let beside = instances(&cell.flows).filter(|(_, flow)| flow.runs_own_programs()).count();
    Gate::new(beside + usize::from(arrives(cell)), now)
}

/// Whether a cell's workload is programs with company: its server starts at once, and its client after the others.
fn arrives(cell: &Cell) -> bool {
    cell.workload.connections().is_none() && !cell.flows.is_empty()
}

/// The flows' resources.
pub struct FlowContext<'a> {
    pub cell: &'a Cell,
    pub testbed: &'a Testbed,
    pub threads: &'a Threads,
    pub zero: Instant,
    pub network: &'a dyn Network,
    pub virtual_time: bool,
    pub deadline: std::time::Instant,
    pub key_logs: Option<&'a KeyLogs>,
    /// Holds the workload and all flows until the programs among them are ready.
    pub gate: Gate,
}

/// Called with a flow's error while the workload may still run.
pub type OnFault<'a> = dyn Fn(&CellError) + Sync + 'a;

pub struct Running<'scope> {
    flows: Vec<ScopedJoinHandle<'scope, Result<FlowOutcome, CellError>>>,
}

impl FlowContext<'_> {
    pub fn end(&self, endings: &[Ending]) {
        let now = self.testbed.clock.now();
        for ending in endings {
            ending.end(now);
        }
    }

    pub fn endings(&self) -> Vec<Ending> {
        instances(&self.cell.flows).map(|_| Ending::default()).collect()
    }

    /// Starts every flow on its own thread, each with its ending. `settings` are for a flow's connections.
    pub fn start<'scope>(
        &'scope self,
        scope: &'scope std::thread::Scope<'scope, '_>,
        endings: &'scope [Ending],
        on_fault: &'scope OnFault<'scope>,
        settings: impl Fn(u16, &Flow) -> Result<Settings, CellError>,
    ) -> Result<Running<'scope>, CellError> {
        let mut flows = Vec::new();
        for ((number, ending), (pair, flow)) in (1..).zip(endings).zip(instances(&self.cell.flows)) {
            let settings = settings(number, flow)?;
            let hosts = &self.testbed.pairs[pair];
            flows.push(scope.spawn(move || {
                self.run(flow, hosts, number, ending, settings).map_err(|error| {
                    let error = error.of_flow(&flow.name);
                    on_fault(&error);
                    // Nobody waits for it any more.
                    self.gate.shut();
                    error
                })
            }));
        }
        Ok(Running { flows })
    }

    /// Runs the workload when all programs are ready. `context`: its own.
    pub fn run_workload<'a>(
        &'a self,
        context: &mut Context<'a>,
        begin: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Measured, WorkloadError> {
        let arrives = arrives(self.cell);
        context.begin = arrives.then_some(begin);
        let may_begin = arrives || self.gate.wait().is_some();
        let measured = if may_begin { self.cell.workload.run(context) } else { Ok(Measured::default()) };
        // Without it, flows have nothing to wait for.
        self.gate.shut();
        measured
    }

    /// The workload's programs are ready. Whether all others are, too.
    pub fn arrive(&self) -> bool {
        self.gate.arrive(self.testbed.clock.now());
        self.gate.wait().is_some()
    }

    /// Tells a workload's programs and peers about the cell.
    pub fn fill_in<'a>(&'a self, context: &mut Context<'a>, workload: &WorkloadConfig) {
        context.key_logs = self.key_logs;
        (context.peers, context.workload) = (workload.peers().clone(), workload.settings_for_peers());
        (context.virtual_time, context.deadline) = (self.virtual_time, Some(self.deadline));
    }

    /// The directory for output of a flow's programs and peers.
    fn output_of(&self, flow: &Flow, number: u16) -> Result<Option<PathBuf>, CellError> {
        let Some(directory) = self.cell.output.directory.as_ref().filter(|_| flow.workload.runs_programs()) else {
            return Ok(None);
        };
        let own = directory.join(format!("flow-{number}"));
        let failed = |cause| HostError::new(format!("cannot make {}", own.display()), cause);
        std::fs::create_dir(&own).map_err(failed)?;
        Ok(Some(own))
    }

    fn run(
        &self,
        flow: &Flow,
        hosts: &Pair,
        number: u16,
        ending: &Ending,
        settings: Settings,
    ) -> Result<FlowOutcome, CellError> {
        let clock = self.testbed.clock;
        let port = self.network.port_of_flow(number);
        let progress = Progress::default();
        let began = OnceLock::new();
        let output = self.output_of(flow, number)?;
        let chance = Seed(self.cell.seed).child("flows").word(number.into());
        let start_ns = flow.start_ns + chance % (flow.spread_ns + 1);
        // Times count from when all programs are ready.
        let after = |ns| self.gate.wait().map(|opened| opened + Duration::from_nanos(ns));
        let begin = || {
            let begins = after(start_ns).is_some_and(|start| ending.wait_until(clock, start));
            if begins {
                let _ = began.set(clock.now());
            }
            begins
        };
        let ready = || {
            self.gate.arrive(clock.now());
            begin()
        };
        let mut measured = std::thread::scope(|scope| {
            if let Some(stop_ns) = flow.stop_ns {
                let after = &after;
                scope.spawn(move || {
                    if after(stop_ns).is_some_and(|stop| ending.wait_until(clock, stop)) {
                        ending.end(clock.now());
                    }
                });
            }
            let mut context = Context::new(self.testbed, settings, &progress, self.threads);
            self.fill_in(&mut context, &flow.workload);
            (context.hosts, context.output) = (hosts, output.as_deref());
            (context.ending, context.port) = (Some(ending), Some(port));
            context.far_server = self.network.server_of_flow(number);
            let measured = if flow.runs_own_programs() {
                context.begin = Some(&ready);
                flow.workload.run(&context)
            } else if begin() {
                flow.workload.run(&context)
            } else {
                Ok(Measured::default())
            };
            // Nobody need wait for its end any longer.
            if measured.is_err() {
                self.gate.shut();
            }
            ending.end(clock.now());
            measured
        })?;
        if flow.runs_own_programs()
            && let Some(how) = measured.first_errors.get(&Outcome::Error)
        {
            return Err(CellError::new(ErrorKind::Host, how.clone()).hint(OUTPUT_OF_FLOW));
        }
        let began = began.into_inner();
        let mut samples = std::mem::take(&mut measured.samples);
        for sample in &mut samples {
            sample.flow = number;
        }
        let since = |time: Instant| (time - self.zero).as_nanos();
        let [client_socket, server_socket] = std::mem::take(&mut measured.sockets);
        let report = FlowReport {
            flow: number,
            name: flow.name.clone(),
            port,
            began_ns: began.map(since),
            ended_ns: since(ending.at().unwrap_or_else(|| clock.now())),
            samples: SampleCounts::of(&samples, &measured),
            unfinished: measured.unfinished,
            client_socket,
            server_socket,
        };
        Ok(FlowOutcome { report, shares: !flow.is_helper(), samples, warnings: measured.warnings })
    }
}

impl Running<'_> {
    /// Waits until all have ended.
    pub fn join(self) -> Result<Vec<FlowOutcome>, CellError> {
        // All are joined before the first error counts.
        let ended: Vec<_> = self.flows.into_iter().map(ScopedJoinHandle::join).collect();
        ended.into_iter().map(|ran| ran.map_err(|_| CellError::internal("a flow panicked"))?).collect()
    }
}
