//! Runs one cell: builds the hosts and the path, runs the workload, closes the books.

use crate::cell_network::{Network, network_of};
use crate::connections::write_connections;
use crate::event::{FidelitySoFar, ProgressReport, write_last_event};
use crate::files::Files;
use crate::flow::ports;
use crate::flows::{FlowContext, FlowOutcome, INTERVAL, apart, gate_of};
use crate::message_drops::count_own_drops;
use crate::processor_time::Profile;
use crate::program_sockets::ProgramSockets;
use crate::result::{CellResult, CellRun, ProcessFacts};
use crate::spent::{Known, hosts, write_spent};
use crate::table::write_table;
use crate::{Cell, CellError, Event, Flow, FlowReport};
use crosswind_attribution::{Hosts, ProgramFacts};
use crosswind_host::{Dscp, EmulatorReport, KeyLogs, Sampler, Testbed, TestbedReport, Threads, realtime};
use crosswind_ledger::{
    Cpus, ExchangeDelay, FlowCounter, FlowInterval, HearSent, HostStarvation, Observed, Recorder, SinkReport, Wanted,
};
use crosswind_netem::{NetemReport, QdiscChange};
use crosswind_quic_decrypt::{KeptDatagrams, KeptSegments, KeyLog, Opener};
use crosswind_transport::security::{KeyLogFile, Security};
use crosswind_transport::{
    Http2Windows, HttpEnds, Payload, QuicPackets, QuicSettings, Resumption, Settings, SocketSettings, TcpSockets,
};
use crosswind_units::{Instant, Seed};
use crosswind_workload::{Context, Measured, TrafficPattern, Warning, WorkloadConfig};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Programs' QUIC packets of each host with known frames: more than there are datagrams, for one may be several.
const MOST_OPENED: usize = 1_200_000;
/// Bytes of QUIC datagrams kept until the keys are known, and of TLS records likewise.
const MOST_SEALED: usize = 128 << 20;
/// The most packets kept for attribution: a guest has 512 MB of memory, and one with programs has more.
const MOST_ATTRIBUTED: usize = 400_000;
const MOST_OF_PROGRAMS: usize = 1_000_000;

/// Called with every event. Its error ends the cell.
pub type OnEvent<'a> = dyn FnMut(&Event) -> Result<(), CellError> + 'a;

/// Sleeps until the timer phase given by the cell's seed, before its hosts exist.
fn wait_for_phase(cell: &Cell, machine: &Machine) {
    if machine.virtual_time {
        std::thread::sleep(cell.host.tick_phase.wait(Seed(cell.seed)).into());
    }
}

/// Runs `cell`, and calls `on_event` with its progress.
pub fn run_cell(cell: &Cell, on_event: &mut OnEvent<'_>) -> Result<CellResult, CellError> {
    let mut network = network_of(cell)?;
    let machine = Machine::prepare(&*network)?;
    let (keeps_packets, has_flows) = (packets_to_keep(cell), !cell.flows.is_empty());
    let sealed = Sealed::of(cell)?;
    wait_for_phase(cell, &machine);
    let wanted = match &sealed {
        _ if cell.output.capture => Wanted::Captures,
        Some(_) => Wanted::SentPayloads,
        None => Wanted::Nothing,
    };
    let (recorder, sink) = Recorder::new(cell.output.packets || keeps_packets > 0 || has_flows, wanted);
    let sink = sink.telling_of_sent(sealed.as_ref().map(Sealed::keeper));
    let started = std::time::Instant::now();
    let testbed = network.connect(recorder)?;
    let zero = testbed.clock.now();
    let records = Records::of(cell, &testbed, machine.virtual_time);
    let counter = has_flows.then(|| FlowCounter::new(zero, INTERVAL, ports(&cell.flows)));
    let files = Files::start(cell, &testbed, zero, sink.keeping_packets(keeps_packets).counting_flows(counter))?;
    on_event(&Event::Ready { setup_ns: started.elapsed().as_nanos() as u64 })?;

    let threads = Threads::sampled_by(if cell.output.profile { Some(Sampler::start()?) } else { None });
    let deadline = started + Duration::from_nanos(cell.deadline_ns);
    network.start_capture()?;
    let virtual_time = machine.virtual_time;
    let flows = FlowContext {
        gate: gate_of(cell, zero),
        cell,
        network: &*network,
        testbed: &testbed,
        threads: &threads,
        zero,
        deadline,
        virtual_time,
        key_logs: sealed.as_ref().and_then(|sealed| sealed.keys.as_ref()),
    };
    let (mut measured, mut flows, exchange_delay) = Run { shared: flows, records: &records }.measure(on_event)?;
    let programs_ended = measured.samples.iter().filter_map(|it| it.received).max().unwrap_or(testbed.clock.now());
    let known = network.finish()?;

    let (mut readback, cpus) = (testbed.readback.clone(), testbed.cpus.clone());
    let elapsed = testbed.clock.now() - zero;
    let counters = Arc::clone(testbed.traffic());
    let ended = testbed.finish()?;
    let netem = network.netem();
    let all_traffic = counters.read();
    let written = files.finish()?;
    let (profile, doubt) = threads.sampler().map_or((None, None), Profile::new);
    measured.warnings.extend(flows.iter_mut().flat_map(|ran| std::mem::take(&mut ran.warnings)));
    measured.warnings.extend(cell.preflight().into_iter().chain(flows.iter().filter_map(FlowOutcome::failure)));
    if cell.flows_apart().is_none() {
        measured.warnings.extend(apart(&flows, elapsed));
    }
    measured.warnings.extend(warnings(cell, &ended, netem, &written, elapsed));
    measured.warnings.extend(doubt.into_iter().chain(missing(known.capture_missed)));
    if cell.workload.wants_own_drops() && ended.report.is_some() {
        count_own_drops(&mut measured.samples, &written.kept);
    }
    let flows = write_tables(cell, &measured, flows, ended.report.is_some().then_some(&written.flows), zero)?;
    records.write_sockets(cell, zero)?;
    if cell.output.spent && ended.report.is_some() {
        let hosts = hosts(cell, &measured, virtual_time, ended.report.as_ref(), &readback);
        on_event(&Event::Measured {})?;
        let (mut facts, warning) = sealed.map(|sealed| sealed.open(&written)).unwrap_or_default();
        measured.warnings.extend(warning);
        facts.sockets = records.programs.as_ref().map(|programs| programs.counts(cell)).unwrap_or_default();
        records.write_spent(cell, &measured, &written, &facts, hosts, [zero, programs_ended])?;
    }
    if let Some(server) = known.server {
        readback[1] = server;
    }
    let run = CellRun {
        network: known.report,
        measured,
        flows,
        report: ended.report,
        netem: netem.cloned(),
        devices: ended.devices,
        readback,
        retransmitted_segments: ended.retransmitted_segments,
        all_traffic,
        profile,
        process: ProcessFacts {
            elapsed_ns: elapsed.as_nanos(),
            virtual_time,
            processors_awake: machine.awake.is_some(),
            peak_memory_bytes: realtime::peak_memory_bytes().ok(),
        },
    };
    Ok(CellResult::new(cell, run, |report, kernel_drops| {
        let threads = (!virtual_time).then_some(&threads);
        Observed { exchange_delay, ..observed(report, kernel_drops, threads, machine.memory_locked, &cpus) }
    }))
}

/// The number of packet records kept in memory for evaluation at the end.
fn packets_to_keep(cell: &Cell) -> usize {
    match (cell.workload.wants_own_drops(), cell.output.spent) {
        (false, false) => 0,
        (false, true) => most_attributed(is_of_programs(cell)),
        (true, _) => usize::MAX,
    }
}

const fn most_attributed(is_of_programs: bool) -> usize {
    if is_of_programs { MOST_OF_PROGRAMS } else { MOST_ATTRIBUTED }
}

/// Optional records of packets and sockets during the workload.
struct Records {
    /// QUIC packets and their frames.
    quic: Option<Arc<QuicPackets>>,
    /// HTTP/1.1 and HTTP/2 writes.
    http: Option<Arc<HttpEnds>>,
    /// The kernel's state of TCP sockets.
    tcp: Option<Arc<TcpSockets>>,
    /// The same for programs' sockets.
    programs: Option<ProgramSockets>,
}

impl Records {
    fn of(cell: &Cell, testbed: &Testbed, virtual_time: bool) -> Self {
        let clock = testbed.clock;
        let attributed = cell.output.spent && cell.workload.connections().is_some();
        let wants_tcp = cell.output.directory.is_some() && (cell.output.spent || cell.host.sample_tcp_ns.is_some());
        Self {
            quic: attributed.then(|| Arc::new(QuicPackets::new(most_attributed(is_of_programs(cell))))),
            http: attributed.then(|| Arc::new(HttpEnds::new(clock, most_attributed(is_of_programs(cell))))),
            tcp: wants_tcp.then(|| Arc::new(TcpSockets::new(clock))),
            programs: ProgramSockets::of(cell, testbed, virtual_time),
        }
    }

    fn write_sockets(&self, cell: &Cell, zero: Instant) -> Result<(), CellError> {
        let mut sockets = self.tcp.as_ref().map(|sockets| sockets.take()).unwrap_or_default();
        sockets.extend(self.programs.iter().flat_map(|programs| programs.samples(cell)));
        match &cell.output.directory {
            Some(directory) if !sockets.is_empty() => write_table(directory, &sockets, zero),
            _ => Ok(()),
        }
    }

    /// Writes exchanges' and connections' time by cause. Args: from when to when programs ran.
    fn write_spent(
        &self,
        cell: &Cell,
        measured: &Measured,
        written: &SinkReport,
        facts: &ProgramFacts,
        hosts: Hosts,
        [zero, programs_ended]: [Instant; 2],
    ) -> Result<(), CellError> {
        let Some(directory) = &cell.output.directory else { return Ok(()) };
        let quic = self.quic.as_ref().map(|packets| packets.take()).unwrap_or_default();
        let http = self.http.as_ref().map(|ends| ends.take()).unwrap_or_default();
        let packets = written.kept.as_slice();
        if is_of_programs(cell) {
            write_connections(directory, packets, facts, hosts, [zero, programs_ended])?;
        }
        if cell.workload.connections().is_some() {
            let until = packets.iter().filter(|_| written.left_out > 0).map(|it| it.left.unwrap_or(it.entered)).max();
            write_spent(
                cell,
                measured,
                directory,
                Known { packets, quic: &quic, facts, http: &http, hosts, until },
                zero,
            )?;
        }
        Ok(())
    }
}

/// Programs' payloads, and their key logs.
struct Sealed {
    keys: Option<KeyLogs>,
    kept: Arc<Mutex<(KeptDatagrams, KeptSegments)>>,
}

impl Sealed {
    /// Nothing, where they are not to be read.
    fn of(cell: &Cell) -> Result<Option<Self>, CellError> {
        let output = &cell.output;
        let is_wanted = output.spent && is_of_programs(cell) && cell.path.backend.is_emulated();
        if !is_wanted {
            return Ok(None);
        }
        let keys = if output.keys { Some(KeyLogs::new()?) } else { None };
        let kept = (KeptDatagrams::new(MOST_SEALED), KeptSegments::new(MOST_SEALED));
        Ok(Some(Self { keys, kept: Arc::new(Mutex::new(kept)) }))
    }

    /// Keeps payloads as they are sent.
    fn keeper(&self) -> HearSent {
        let (kept, has_keys) = (Arc::clone(&self.kept), self.keys.is_some());
        Box::new(move |side, packet| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let (datagrams, segments) = &mut *kept;
            if has_keys {
                datagrams.add(side, packet);
            }
            segments.add(side, packet);
        })
    }

    /// Facts from frames, as far as readable, and a warning if packets were left out. Nothing else of them is left.
    fn open(self, written: &SinkReport) -> (ProgramFacts, Option<Warning>) {
        let mut keys = KeyLog::default();
        self.keys.iter().flat_map(KeyLogs::read).for_each(|text| keys.add(&text));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (datagrams, segments) = &mut *kept;
        let mut opener = Opener::new(&keys, MOST_OPENED);
        datagrams.iter().for_each(|datagram| opener.add(datagram));
        let segments = std::mem::take(segments).open(&keys);
        let facts = ProgramFacts { quic: opener.finish().logs, http2: segments.connections, ..ProgramFacts::default() };
        let left_out = datagrams.left_out() + segments.left_out + written.capture_missed;
        (facts, (left_out > 0).then(|| Warning::frames_incomplete(left_out)))
    }
}

/// Whether connections are programs', or pages', with many at a time.
fn is_of_programs(cell: &Cell) -> bool {
    let pages = matches!(cell.workload.traffic(), TrafficPattern::Unknown {} | TrafficPattern::Pages { .. });
    pages || cell.workload.peers().any()
}

/// Warns above this share of time with held packets.
const HELD_SHARE: f64 = 0.01;

/// Measures on this machine against disturbances of the cell, until this is dropped.
struct Machine {
    virtual_time: bool,
    memory_locked: bool,
    awake: Option<File>,
}

impl Machine {
    /// In virtual time nothing is late, and locking takes a tenth of a second visible only to the machine's clock.
    fn prepare(network: &dyn Network) -> Result<Self, CellError> {
        let virtual_time = network.is_in_virtual_time()?;
        let may_disturb = network.is_built() && !virtual_time;
        let memory_locked = may_disturb && realtime::lock_memory();
        let awake = if may_disturb { realtime::keep_processors_awake() } else { None };
        Ok(Self { virtual_time, memory_locked, awake })
    }
}

/// The emulation's measurements. In virtual time no thread waits for a processor: there are no `threads` to ask.
fn observed(
    report: &EmulatorReport,
    kernel_drops: u64,
    threads: Option<&Threads>,
    memory_locked: bool,
    cpus: &crosswind_host::Cpus,
) -> Observed {
    let numbers = |cpus: &[usize]| cpus.iter().map(|&cpu| cpu as u32).collect();
    Observed {
        delay_error_ns: report.delay_error.report(),
        starvation: threads.map(|_| report.starvation),
        probe_starvation: threads.map(Threads::worst).map(|[client, server]| HostStarvation { client, server }),
        exchange_delay: None,
        held_ns: report.held.as_nanos(),
        kernel_drops,
        realtime: report.realtime,
        in_kernel: report.in_kernel,
        memory_locked,
        cpus: Cpus { emulator: numbers(&cpus.emulator), hosts: numbers(&cpus.hosts) },
    }
}

/// Notes for readers of the result.
fn warnings(
    cell: &Cell,
    ended: &TestbedReport,
    netem: Option<&NetemReport>,
    written: &SinkReport,
    elapsed: crosswind_units::Duration,
) -> impl Iterator<Item = Warning> {
    let full = ["client", "server"].into_iter().zip(ended.dropped_datagrams);
    full.filter(|&(_, datagrams)| datagrams > 0)
        .map(|(host, datagrams)| Warning::socket_full(host, datagrams))
        .chain(missing(if cell.output.capture { written.capture_missed } else { 0 }))
        .chain((written.left_out > 0).then(|| Warning::connections_incomplete(written.kept.len() as u64)))
        .chain(netem.and_then(|netem| late_changes(cell, &netem.changes)))
        .chain(ended.report.as_ref().and_then(|report| held_back(report, elapsed)))
}

/// Late changes of netem's settings: the kernel had them later than a packet may be.
fn late_changes(cell: &Cell, changes: &[QdiscChange]) -> Option<Warning> {
    let late = changes.iter().filter(|change| change.late_ns > cell.budget.delay_error_p99_ns).count();
    let most_ns = changes.iter().map(|change| change.late_ns).max()?;
    (late > 0).then(|| Warning::changes_late(late, changes.len(), most_ns))
}

/// Packets waiting in the hosts' devices show the machine's limit, not the path's.
fn held_back(report: &EmulatorReport, elapsed: crosswind_units::Duration) -> Option<Warning> {
    let held_share = report.held.as_nanos() as f64 / elapsed.as_nanos().max(1) as f64;
    let packets_per_s = || report.delay_error.report().n as f64 / (elapsed.as_nanos() as f64 / 1e9);
    (held_share > HELD_SHARE).then(|| Warning::forwarding_limit(held_share, packets_per_s()))
}

fn missing(packets: u64) -> Option<Warning> {
    (packets > 0).then(|| Warning::capture_incomplete(packets))
}

/// Writes the measurements of the workload and its flows. Returns the flows' results.
fn write_tables(
    cell: &Cell,
    measured: &Measured,
    flows: Vec<FlowOutcome>,
    intervals: Option<&Vec<FlowInterval>>,
    zero: Instant,
) -> Result<Vec<FlowReport>, CellError> {
    let (reports, of_flows): (Vec<_>, Vec<_>) = flows.into_iter().map(|ran| (ran.report, ran.samples)).unzip();
    let Some(directory) = &cell.output.directory else { return Ok(reports) };
    if reports.is_empty() {
        write_table(directory, &measured.samples, zero)?;
    } else {
        write_table(directory, &[&measured.samples, &of_flows.concat()].map(Vec::as_slice).concat(), zero)?;
        if let Some(intervals) = intervals {
            write_table(directory, intervals, zero)?;
        }
    }
    if !measured.objects.is_empty() {
        write_table(directory, &measured.objects, zero)?;
    }
    Ok(reports)
}

/// A running workload.
struct Run<'a> {
    /// Shared with the flows beside it.
    shared: FlowContext<'a>,
    records: &'a Records,
}

impl Run<'_> {
    /// Runs the workload on a thread of its own, and reports its progress meanwhile. Returns also how much longer its
    /// exchanges were than alone.
    fn measure(
        &self,
        on_event: &mut OnEvent<'_>,
    ) -> Result<(Measured, Vec<FlowOutcome>, Option<ExchangeDelay>), CellError> {
        let progress = crosswind_workload::Progress::default();
        let workload = &self.shared.cell.workload;
        let settings = self.settings()?;
        let Self { shared: flows, records } = self;
        let (cell, endings) = (self.shared.cell, flows.endings());
        let mut context = Context::new(self.shared.testbed, settings.clone(), &progress, self.shared.threads);
        flows.fill_in(&mut context, workload);
        context.output = cell.output.directory.as_deref();
        (context.client_streams, context.client_whole) = (cell.output.client_streams(), cell.output.client_whole);
        (context.far_server, context.port) = self.shared.network.server().unzip();
        let pause = Duration::from_nanos(self.shared.cell.heartbeat_ns);
        let (waiting, over) = (std::thread::current(), AtomicBool::new(false));
        let begin = || flows.arrive();
        let ask = || records.programs.iter().for_each(ProgramSockets::ask);
        context.on_clients_ended = Some(&ask);
        let on_fault = |error: &CellError| {
            progress.fail_with(error.into());
            waiting.unpark();
        };
        std::thread::scope(|scope| {
            // Gone when this ends, however it does.
            let (_running, stopped) = channel::<()>();
            let (_programs_running, programs_stopped) = channel::<()>();
            if let (Some(tcp), Some(interval)) = (&records.tcp, cell.host.sample_tcp_ns) {
                scope.spawn(move || {
                    while stopped.recv_timeout(Duration::from_nanos(interval)) == Err(RecvTimeoutError::Timeout) {
                        tcp.sample();
                    }
                });
            }
            if let Some(programs) = &records.programs {
                scope.spawn(move || programs.watch(&programs_stopped));
            }
            let running_flows = flows
                .start(scope, &endings, &on_fault, |number, flow| self.settings_of_flow(number, flow, &settings))?;
            let running = scope.spawn(|| {
                let result = flows.run_workload(&mut context, &begin);
                flows.end(&endings);
                over.store(true, Ordering::Release);
                waiting.unpark();
                result
            });
            // A panic is over as well, without having said so.
            while !over.load(Ordering::Acquire) && !running.is_finished() {
                std::thread::park_timeout(pause);
                let fault = progress.fault().map_or(Ok(()), |fault| Err(CellError::from(fault)));
                let fault = fault.and_then(|()| self.shared.network.check());
                if let Err(error) = fault.and_then(|()| self.heartbeat(progress.snapshot(), on_event)) {
                    // The workload's threads still wait for packets; only the process's end stops them.
                    if let Some(key_logs) = self.shared.key_logs {
                        key_logs.remove();
                    }
                    write_last_event(&Event::from(&error));
                    std::process::exit(error.exit_status().into());
                }
            }
            let measured = running.join().map_err(|_| CellError::internal("the workload panicked"));
            // All programs have ended: their sockets' last counts.
            ask();
            flows.end(&endings);
            let ended = running_flows.join();
            if let Some(fault) = progress.fault() {
                return Err(fault.into());
            }
            Ok((measured??, ended?, self.exchange_delay(progress.snapshot())))
        })
    }

    /// How much time CPU contention has added to exchanges so far.
    fn exchange_delay(&self, now: crosswind_workload::Snapshot) -> Option<ExchangeDelay> {
        if self.shared.virtual_time || !self.shared.testbed.is_emulated() || self.shared.threads.are_hidden() {
            return None;
        }
        let alone = self.shared.cell.placement.watch.is_none();
        let waited_ns = if alone {
            self.shared.threads.worst().iter().map(|thread| thread.wait_ns).sum()
        } else {
            self.shared.threads.waited_ns()
        };
        let packets = self.shared.testbed.punctuality().snapshot();
        ExchangeDelay::new(now.done, now.median_ns, waited_ns, packets.released, packets.error_ns)
    }

    /// The settings for both ends of every connection.
    fn settings(&self) -> Result<Settings, CellError> {
        let flows = self.shared.cell.flows.iter().filter_map(|flow| flow.workload.connections());
        let mut all = self.shared.cell.workload.connections().into_iter().chain(flows);
        let is_secure = all.any(|needs| needs.transport.features().secure);
        let security =
            if is_secure { Some(Arc::new(self.with_key_log(self.shared.network.security()?)?)) } else { None };
        Ok(Settings {
            security,
            tcp_totals: self.shared.network.tcp_totals(),
            quic_packets: self.records.quic.clone(),
            http_ends: self.records.http.clone(),
            tcp_sockets: self.records.tcp.clone(),
            ..self.shared.cell.connection_settings()
        })
    }

    /// The same for a flow beside the workload; `settings` are the workload's.
    fn settings_of_flow(&self, number: u16, flow: &Flow, settings: &Settings) -> Result<Settings, CellError> {
        let mut own = self.shared.cell.settings_of(&flow.workload);
        if flow.congestion_control.is_some() {
            own.socket.congestion_control.clone_from(&flow.congestion_control);
        }
        own.socket.dscp = flow.dscp.map(Dscp::bits).or(own.socket.dscp);
        let security =
            self.shared.network.security_of_flow(number)?.map(Arc::new).or_else(|| settings.security.clone());
        Ok(Settings { security, tcp_sockets: settings.tcp_sockets.clone(), qlog: None, ..own })
    }

    fn with_key_log(&self, security: Security) -> Result<Security, CellError> {
        let own = self.shared.key_logs.map(|logs| logs.add(None)).transpose()?.flatten();
        let failed = |e| CellError::disk("keys.log", &e);
        let log = match (&self.shared.cell.output.directory, own) {
            (Some(directory), own) if self.shared.cell.output.capture => {
                KeyLogFile::create(&directory.join("keys.log"), own.as_deref()).map_err(failed)?
            }
            (_, Some(own)) => KeyLogFile::private(&own).map_err(failed)?,
            _ => return Ok(security),
        };
        Ok(security.with_key_log(Arc::new(log)))
    }

    fn heartbeat(&self, now: crosswind_workload::Snapshot, on_event: &mut OnEvent<'_>) -> Result<(), CellError> {
        let testbed = self.shared.testbed;
        let exchange_delay = self.exchange_delay(now).map(|delay| delay.share_of(&self.shared.cell.budget));
        let fidelity = testbed.is_emulated().then(|| {
            FidelitySoFar::new(testbed.punctuality().snapshot(), self.shared.threads.longest_wait_ns(), exchange_delay)
        });
        on_event(&Event::Progress(ProgressReport {
            done: now.done,
            total: self.shared.cell.workload.exchanges(),
            lost: now.lost,
            elapsed_ns: (testbed.clock.now() - self.shared.zero).as_nanos(),
            median_ns: now.median_ns,
            fidelity,
        }))?;
        if std::time::Instant::now() > self.shared.deadline {
            return Err(self.shared.cell.past_deadline(now.done));
        }
        Ok(())
    }
}

impl Cell {
    /// The settings for both ends of every connection, without certificates and keys.
    pub fn connection_settings(&self) -> Settings {
        self.settings_of(&self.workload)
    }

    fn settings_of(&self, workload: &WorkloadConfig) -> Settings {
        let needs = workload.connections();
        Settings {
            socket: SocketSettings {
                congestion_control: self.host.congestion_control.clone(),
                nodelay: self.host.nodelay,
                send_buffer: self.host.send_buffer_bytes,
                receive_buffer: self.host.receive_buffer_bytes,
                user_timeout: some_time(self.host.tcp_user_timeout_ns),
                keep_alive: some_time(self.host.tcp_keep_alive_ns),
                dscp: self.host.dscp.map(Dscp::bits),
            },
            quic: QuicSettings {
                idle_timeout: some_time(self.host.quic_idle_timeout_ns),
                keep_alive: some_time(self.host.quic_keep_alive_ns),
                mtu_discovery: self.host.quic_mtu_discovery,
                packet_threshold: self.host.quic_packet_threshold,
                time_threshold: self.host.quic_time_threshold,
                stream_window: self.host.quic_stream_window_bytes,
                connection_window: self.host.quic_connection_window_bytes,
            },
            http2: Http2Windows {
                stream: self.host.http2_stream_window_bytes.unwrap_or(Http2Windows::default().stream),
                connection: self.host.http2_connection_window_bytes.unwrap_or(Http2Windows::default().connection),
            },
            resumption: needs.map_or(Resumption::None, |needs| needs.resumption),
            polling: needs.is_some_and(|needs| needs.polling),
            payload: needs.map_or(Payload::Binary, |needs| needs.payload),
            // Both ends are our own: no message size in a cell is refused.
            max_message_bytes: Some(1 << 30),
            request_bytes: needs.map_or(0, |needs| needs.request_bytes) as usize,
            qlog: self.output.qlog.then(|| self.output.directory.clone()).flatten(),
            ..Settings::default()
        }
    }
}

/// A time; 0 means none.
fn some_time(ns: Option<u64>) -> Option<Duration> {
    ns.filter(|&ns| ns > 0).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_that_the_kernel_has_later_than_a_packet_may_be_is_a_warning() {
        let cell = Cell::from_value(json!({
            "schema": "crosswind.cell/1", "budget": {"delay_error_p99_ns": 1_000_000}, "workload": {"kind": "echo", "transport": "tcp"},
        }));
        let changes =
            |late: &[u64]| -> Vec<_> { late.iter().map(|&late_ns| QdiscChange { due_ns: 0, late_ns }).collect() };
        let cell = cell.unwrap();
        assert_eq!(late_changes(&cell, &changes(&[1_000_000, 400])), None);
        assert_eq!(
            late_changes(&cell, &changes(&[400, 1_000_001, 2_500_000])),
            Some(Warning::changes_late(2, 3, 2_500_000))
        );
    }
}
