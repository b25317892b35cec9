//! Runs one cell: builds the hosts and the path, runs the workload, closes the books.

use crate::fates::find_fates;
use crate::profile::Profile;
use crate::program::Pair;
use crate::table::{Part, write_objects, write_samples};
use crate::{Cell, CellError, Event, write_event};
use crosswind_host::{EmulatorReport, Sampler, Testbed, TestbedSettings, Threads, realtime, sysctl};
use crosswind_ledger::{
    Capture, CaptureOptions, Cpus, DeviceCounters, DropCause, FidelityReport, HostStarvation, LedgerReport, Observed,
    PacketTable, Recorder, Sink, SinkReport, kernel_drops_in_words,
};
use crosswind_transport::security::{KeyLogFile, Security};
use crosswind_transport::{Outcome, Settings, SocketSettings};
use crosswind_units::{Instant, Seed};
use crosswind_workload::{Context, Measured, Progress, Resumptions};
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// Runs `cell`; `tell` hears of its progress, and its error ends the cell.
pub fn run_cell(cell: &Cell, tell: &mut dyn FnMut(&Event<'_>) -> Result<(), CellError>) -> Result<Value, CellError> {
    let memory_locked = realtime::lock_memory();
    // Beside others there is enough to do; processors that poll instead of sleeping use up a virtual machine's share of its
    // host, which then stops them all for milliseconds.
    let alone = cell.placement.watch.is_none();
    let awake = if alone { realtime::keep_processors_awake() } else { None };
    let wants_fates = cell.workload.wants_fates();
    let (recorder, sink) = Recorder::new(cell.output.packets || wants_fates, cell.output.capture);
    let started = std::time::Instant::now();
    let testbed = Testbed::build(TestbedSettings {
        backend: cell.path.backend,
        family: cell.path.family,
        mtu: cell.path.mtu_bytes,
        host: cell.host.clone(),
        path: cell.path.config(),
        seed: Seed(cell.seed),
        placement: cell.placement.clone(),
        late_after: crosswind_units::Duration::from_nanos(cell.budget.delay_error_p99_ns),
        recorder,
    })?;
    let zero = testbed.clock.now();
    let files = Files::start(cell, &testbed, zero, sink.keeping_packets(wants_fates))?;
    tell(&Event::Ready { setup_ns: started.elapsed().as_nanos() as u64 })?;

    let deadline = started + Duration::from_nanos(cell.deadline_ns);
    let threads = Threads::sampled_by(if cell.output.profile { Some(Sampler::start()?) } else { None });
    let mut measured = measure(cell, &testbed, &threads, zero, deadline, tell)?;
    let readback = testbed.readback.clone();
    let cpus = testbed.cpus.clone();
    let elapsed = testbed.clock.now() - zero;
    let counters = Arc::clone(&testbed.traffic);
    let ended = testbed.finish()?;
    let all_traffic = counters.read();
    for (host, dropped) in ["client", "server"].into_iter().zip(ended.dropped_datagrams) {
        if dropped > 0 {
            measured.warnings.push(format!(
                "the {host}'s socket was full for {dropped} datagrams that the path delivered: they count as lost, but not by the path"
            ));
        }
    }
    let written = files.finish()?;
    if written.capture_missed > 0 {
        let missed = written.capture_missed;
        measured.warnings.push(format!("{missed} packets are missing from the captures: the disk was too slow"));
    }
    if wants_fates && ended.report.is_some() {
        find_fates(&mut measured.samples, &written.kept);
    }
    let (profile, doubt) = threads.sampler().map_or((None, None), Profile::new);
    measured.warnings.extend(doubt);
    if let Some(directory) = &cell.output.directory {
        write_samples(directory, &measured.samples, zero)?;
        if !measured.objects.is_empty() {
            write_objects(directory, &measured.objects, zero)?;
        }
    }
    let traffic = ended.report.is_some().then(|| {
        let setup = measured.setup.unwrap_or_default();
        json!({"setup": setup, "exchanges": all_traffic - setup})
    });
    let cpus = Cpus { emulator: narrow(&cpus.emulator), hosts: narrow(&cpus.hosts) };
    let mut result = conclude(cell, &measured, ended.report, ended.devices, |report, kernel_drops| Observed {
        delay_error_ns: report.delay_error.report(),
        starvation: report.starvation,
        probe_starvation: {
            let [client, server] = threads.worst();
            HostStarvation { client, server }
        },
        kernel_drops,
        realtime: report.realtime,
        memory_locked,
        cpus,
    });
    let host = |side: usize| json!({"sysctl": readback[side].sysctl, "route": readback[side].route, "device": readback[side].device, "socket": measured.sockets[side]});
    result["readback"] = json!({"client": host(0), "server": host(1)});
    result["traffic"] = traffic.into();
    result["profile"] = json!(profile);
    result["elapsed_ns"] = elapsed.as_nanos().into();
    result["processors_awake"] = awake.is_some().into();
    result["peak_memory_bytes"] = realtime::peak_memory_bytes().ok().into();
    Ok(result)
}

/// Runs the workload on a thread of its own, telling of its progress meanwhile.
fn measure(
    cell: &Cell,
    testbed: &Testbed,
    threads: &Threads,
    zero: Instant,
    deadline: std::time::Instant,
    tell: &mut dyn FnMut(&Event<'_>) -> Result<(), CellError>,
) -> Result<Measured, CellError> {
    let progress = Progress::default();
    let context = Context {
        testbed,
        settings: settings(cell)?,
        progress: &progress,
        threads,
        resumptions: Resumptions::default(),
        setup: OnceLock::new(),
    };
    let pause = Duration::from_nanos(cell.heartbeat_ns);
    let total = cell.workload.exchanges();
    let mut heartbeat = || -> Result<(), CellError> {
        let now = progress.snapshot();
        let elapsed_ns = (testbed.clock.now() - zero).as_nanos();
        let fidelity = testbed.is_emulated().then(|| (testbed.punctuality.snapshot(), threads.longest_wait_ns()));
        let (done, lost, median_ns) = (now.done, now.lost, now.median_ns);
        tell(&Event::Progress { done, total, lost, elapsed_ns, median_ns, fidelity })?;
        if std::time::Instant::now() > deadline {
            let message = format!("the cell was not done by its deadline of {} s", cell.deadline_ns as f64 / 1e9);
            return Err(CellError::new("deadline", message).hint("raise deadline_ns, or ask for less"));
        }
        Ok(())
    };
    if let Some(mut pair) = Pair::start(cell, testbed)? {
        let mut told = std::time::Instant::now();
        let status = loop {
            if let Some(status) = pair.poll()? {
                break status;
            }
            if told.elapsed() > pause {
                heartbeat()?;
                told = std::time::Instant::now();
            }
        };
        pair.finish()?;
        let warnings =
            if status.success() { Vec::new() } else { vec![format!("the client program ended with {status}")] };
        return Ok(Measured { warnings, ..Measured::default() });
    }
    let waiting = std::thread::current();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let result = crosswind_workload::run(&cell.workload, &context);
            waiting.unpark();
            result
        });
        while !running.is_finished() {
            std::thread::park_timeout(pause);
            if let Err(error) = heartbeat() {
                // The workload's threads still wait for packets; only the end of the process ends them.
                write_event(&Event::Error(&error));
                std::process::exit(error.exit_status().into());
            }
        }
        running.join().map_err(|_| CellError::new("internal", "the workload panicked"))?.map_err(CellError::from)
    })
}

/// What both ends of every connection are set to.
fn settings(cell: &Cell) -> Result<Settings, CellError> {
    let features = cell.workload.transport().map(|transport| transport.features());
    let security = if features.is_some_and(|features| features.secure) {
        let mut security = Security::new().map_err(|e| CellError::new("internal", e.to_string()))?;
        if let (true, Some(directory)) = (cell.output.capture, &cell.output.directory) {
            let log = KeyLogFile::create(&directory.join("keys.log")).map_err(|e| CellError::disk("keys.log", &e))?;
            security = security.with_key_log(Arc::new(log));
        }
        Some(Arc::new(security))
    } else {
        None
    };
    Ok(Settings {
        socket: SocketSettings {
            congestion_control: cell.host.congestion_control.clone(),
            nodelay: cell.host.nodelay,
            send_buffer: cell.host.send_buffer_bytes,
            receive_buffer: cell.host.receive_buffer_bytes,
        },
        resumption: cell.workload.resumption(),
        polling: cell.workload.polling(),
        payload: cell.workload.payload(),
        request_bytes: cell.workload.request_bytes() as usize,
        path: String::new(),
        security,
        qlog: cell.output.qlog.then(|| cell.output.directory.clone()).flatten(),
    })
}

fn conclude(
    cell: &Cell,
    measured: &Measured,
    report: Option<EmulatorReport>,
    [client, server]: [DeviceCounters; 2],
    observed: impl FnOnce(&EmulatorReport, u64) -> Observed,
) -> Value {
    let ok = measured.samples.iter().filter(|sample| sample.outcome == Outcome::Ok).count();
    let mut reasons = Vec::new();
    let (ledger, fidelity, queueing, emulator_ns) = match report {
        None => {
            let ledger = LedgerReport::from_devices(client, server);
            reasons.extend(kernel_drops_in_words(kernel_drops(&ledger)));
            (ledger, None, None, 0)
        }
        Some(report) => {
            let ledger = report.ledger.close(report.queued, client, server);
            let fidelity = FidelityReport::new(observed(&report, kernel_drops(&ledger)), cell.budget);
            let queueing = json!({"forward": report.queueing[0].report(), "reverse": report.queueing[1].report()});
            (ledger, Some(fidelity), Some(queueing), report.cpu_ns)
        }
    };
    reasons.extend(ledger.mismatches());
    if let Some(fidelity) = &fidelity {
        reasons.extend(fidelity.reasons());
    }
    json!({
        "event": "finished",
        "schema": "crosswind.cell-result/1",
        "id": cell.id,
        "valid": reasons.is_empty(),
        "reasons": reasons,
        "warnings": measured.warnings,
        "samples": {"rows": measured.samples.len(), "ok": ok, "lost": measured.samples.len() - ok},
        "ledger": ledger,
        "fidelity": fidelity,
        "queueing_ns": queueing,
        "cpu": {"client_ns": measured.cpu_ns[0], "server_ns": measured.cpu_ns[1], "emulator_ns": emulator_ns},
        "versions": {"crosswind_cell": env!("CARGO_PKG_VERSION"), "kernel": sysctl::get("kernel.osrelease").unwrap_or_default()},
    })
}

fn kernel_drops(ledger: &LedgerReport) -> u64 {
    ledger.forward.dropped.count(DropCause::Device) + ledger.reverse.dropped.count(DropCause::Device)
}

fn narrow(cpus: &[usize]) -> Vec<u32> {
    cpus.iter().map(|&cpu| cpu as u32).collect()
}

/// Packet records and captures, written by a thread of their own.
struct Files {
    sink: JoinHandle<Result<SinkReport, crosswind_ledger::LedgerError>>,
    parts: Vec<Part>,
}

impl Files {
    fn start(cell: &Cell, testbed: &Testbed, zero: Instant, sink: Sink) -> Result<Self, CellError> {
        let mut parts = Vec::new();
        let (mut packets, mut captures) = (None, None);
        if let Some(directory) = &cell.output.directory {
            let mut begin = |name| {
                let (part, file) = Part::create(directory, name)?;
                parts.push(part);
                Ok::<_, CellError>(file)
            };
            if cell.output.packets {
                packets = Some(PacketTable::new(begin("packets.arrow")?, zero)?);
            }
            if cell.output.capture {
                // Once: two readings of two clocks would set the files apart.
                let wall_clock_origin_ns = testbed.clock.wall_clock_origin_ns();
                let options = |host| CaptureOptions { host, snap_bytes: cell.path.mtu_bytes, wall_clock_origin_ns };
                captures = Some((
                    Capture::new(begin("client.pcapng")?, options("client"))?,
                    Capture::new(begin("server.pcapng")?, options("server"))?,
                ));
            }
        }
        let sink = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || sink.run(packets, captures))
            .map_err(|e| CellError::new("host", format!("cannot start a thread: {e}")))?;
        Ok(Self { sink, parts })
    }

    fn finish(self) -> Result<SinkReport, CellError> {
        let report = self.sink.join().map_err(|_| CellError::new("internal", "the recorder panicked"))??;
        for part in self.parts {
            part.complete()?;
        }
        Ok(report)
    }
}
