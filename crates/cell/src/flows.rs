//! Running a cell's flows beside the workload.

use crate::cell_network::Network;
use crate::flow::{Flow, instances};
use crate::result::{FlowReport, SampleCounts};
use crate::{Cell, CellError};
use crosswind_host::{HostError, KeyLogs, Pair, Testbed, Threads};
use crosswind_transport::Settings;
use crosswind_units::{Duration, Instant, Seed};
use crosswind_workload::{Context, Ending, Measured, Progress, Sample, Warning, WorkloadConfig};
use std::path::PathBuf;
use std::thread::ScopedJoinHandle;

/// The interval for packet counts by flow.
pub const INTERVAL: Duration = Duration::from_millis(100);

/// A finished flow.
pub struct FlowOutcome {
    pub report: FlowReport,
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
    if let Some(never) = flows.iter().find(|it| it.report.began_ns.is_none()) {
        return Some(Warning::flows_apart(&never.report.name, None));
    }
    let last = flows.iter().max_by_key(|it| it.report.began_ns)?;
    let first = flows.iter().min_by_key(|it| it.report.ended_ns)?;
    let ended = first.report.ended_ns.min(elapsed.as_nanos());
    (Some(ended) <= last.report.began_ns).then(|| Warning::flows_apart(&last.report.name, Some(&first.report.name)))
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
}

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
        settings: impl Fn(u16, &Flow) -> Result<Settings, CellError>,
    ) -> Result<Running<'scope>, CellError> {
        let mut flows = Vec::new();
        for ((number, ending), (pair, flow)) in (1..).zip(endings).zip(instances(&self.cell.flows)) {
            let settings = settings(number, flow)?;
            let hosts = &self.testbed.pairs[pair];
            flows.push(scope.spawn(move || self.run(flow, hosts, number, ending, settings)));
        }
        Ok(Running { flows })
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
        let at = |ns| self.zero + Duration::from_nanos(ns);
        let port = self.network.port_of_flow(number);
        let progress = Progress::default();
        let mut measured = Measured::default();
        let mut began = None;
        let output = self.output_of(flow, number)?;
        let chance = Seed(self.cell.seed).child("flows").word(number.into());
        let start_ns = flow.start_ns + chance % (flow.spread_ns + 1);
        if ending.wait_until(clock, at(start_ns)) {
            began = Some(clock.now());
            measured = std::thread::scope(|scope| {
                if let Some(stop_ns) = flow.stop_ns {
                    scope.spawn(move || {
                        if ending.wait_until(clock, at(stop_ns)) {
                            ending.end(clock.now());
                        }
                    });
                }
                let mut context = Context::new(self.testbed, settings, &progress, self.threads);
                self.fill_in(&mut context, &flow.workload);
                (context.hosts, context.output) = (hosts, output.as_deref());
                (context.ending, context.port) = (Some(ending), Some(port));
                context.far_server = self.network.server_of_flow(number);
                let measured = flow.workload.run(&context);
                // Whoever waits for its end need not wait any longer.
                ending.end(clock.now());
                measured
            })?;
        }
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
        Ok(FlowOutcome { report, samples, warnings: measured.warnings })
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
