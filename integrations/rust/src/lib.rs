//! Runs a client and a server of a test on two hosts with an emulated path between them: in virtual time, without
//! privileges, and with the same result every time.
//!
//! Both ends are the test's own binary, which `crosswind exec` starts once for each of them. So this file and `serde_json` are all
//! that a test needs beside the program crosswind.
//!
//! ```no_run
//! # fn serve(_: std::net::SocketAddr) {}
//! # fn ask(_: std::net::SocketAddr) -> Vec<std::time::Duration> { vec![] }
//! // Within a #[test]:
//! let result = crosswind_test::Path::new().network("4g").loss("2%").run(serve, ask);
//! assert!(result.packets() > 0);
//! ```

use std::collections::{BTreeMap, HashSet};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;
use std::{env, fs, process, thread};

use serde_json::Value;

const END: &str = "CROSSWIND_TEST_END";
const HOST: &str = "CROSSWIND_TEST_HOST";
const PORT: &str = "CROSSWIND_TEST_PORT";

/// Where runs are kept with their reports.
pub const REPORTS: &str = "CROSSWIND_REPORT";

/// What lies between client and server. All values are texts, as on the command line of `crosswind exec`.
#[derive(Debug, Clone, Default)]
#[must_use = "a path is run by `run`"]
pub struct Path {
    options: Vec<[String; 2]>,
    fail_if: Vec<String>,
    clock: Option<String>,
    environment: Vec<String>,
    unchecked: bool,
}

macro_rules! settings {
    ($($name:ident: $help:literal,)*) => {$(
        #[doc = $help]
        pub fn $name(self, value: &str) -> Self {
            self.set(stringify!($name), value)
        }
    )*};
}

impl Path {
    /// A path that neither delays nor loses anything.
    pub fn new() -> Self {
        Self::default()
    }

    settings! {
        network: "A network with a name, as `4g`.",
        delay: "One way, as `20ms`.",
        loss: "Of each direction, as `2%`.",
        rate: "Of each direction, as `10mbit`.",
        queue: "Before the link, as `50kB` or `100p`.",
        timeout: "Of the client, as `30s`; 10 minutes unless set.",
    }

    /// Any other setting, by its name in a study: `("forward_loss", "2%")`, `("congestion_control", "bbr")`.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.options.push([format!("--{}", name.replace('_', "-")), value.to_owned()]);
        self
    }

    /// Another hop of the path, as `wifi rate=50mbit delay=2ms`; the client's first.
    pub fn hop(self, hop: &str) -> Self {
        self.set("hop", hop)
    }

    /// A change of the path while the client runs, as `outage start=5s for=1s loss=100%`.
    pub fn change(self, change: &str) -> Self {
        self.set("at", change)
    }

    /// A flow of Crosswind on the same path while the client runs, as `transfer --transport tcp`.
    pub fn beside(self, flow: &str) -> Self {
        self.set("beside", flow)
    }

    /// `virtual` unless it is `real`.
    pub fn clock(mut self, clock: &str) -> Self {
        self.clock = Some(clock.to_owned());
        self
    }

    /// How many times the client runs, with other random decisions each time.
    pub fn repetitions(self, number: u32) -> Self {
        self.set("repetitions", &number.to_string())
    }

    /// Another sequence of random decisions.
    pub fn seed(self, seed: u64) -> Self {
        self.set("seed", &seed.to_string())
    }

    /// A condition, as `p95(client_time) > 300ms`. It has to be shown not to hold; inconclusive fails too.
    pub fn fail_if(mut self, condition: &str) -> Self {
        self.fail_if.push(condition.to_owned());
        self
    }

    /// A variable that client and server need: in virtual time they get none but `PATH` and `HOME`.
    pub fn environment(mut self, name: &str) -> Self {
        self.environment.push(format!("{name}={}", env::var(name).unwrap_or_default()));
        self
    }

    /// Lets a client fail: [`Result::status`] says how it ended.
    pub fn unchecked(mut self) -> Self {
        self.unchecked = true;
        self
    }

    /// Runs a client, and a server on another host, with the path between them. Each gets the server's address. The client
    /// starts once the server listens; its end is the server's. What it returns is how long each of its exchanges took, and
    /// becomes the metric `client_time`. A test runs one path.
    ///
    /// # Panics
    /// Where the client fails (unless [`Path::unchecked`]), a condition does not pass, or there can be no path here.
    pub fn run<S, C>(self, server: S, client: C) -> Result
    where
        S: FnOnce(SocketAddr),
        C: FnOnce(SocketAddr) -> Vec<Duration>,
    {
        match env::var(END).as_deref() {
            Ok("server") => server(address()),
            Ok(_) => say(&client(address())),
            Err(_) => return self.run_outside(&test_name::<C>()),
        }
        process::exit(0)
    }

    fn run_outside(self, test: &str) -> Result {
        static RUN: Mutex<Option<HashSet<String>>> = Mutex::new(None);
        let is_new = RUN.lock().is_ok_and(|mut run| run.get_or_insert_with(HashSet::new).insert(test.to_owned()));
        assert!(is_new, "{test} runs a second path\nhint: make each of them a test");
        let directory = Directory::of(test);
        let own = env::current_exe().expect("the test's own binary").display().to_string();
        let end = |which: &str| {
            let set = ["env", &format!("{END}={which}"), &format!("{HOST}={{address}}"), &format!("{PORT}={{port}}")];
            let run = [own.as_str(), test, "--exact", "--nocapture", "--include-ignored"];
            let set = set.iter().map(ToString::to_string).chain(self.environment.iter().cloned());
            set.chain(run.map(str::to_owned)).collect::<Vec<_>>()
        };
        let server: Vec<String> =
            end("server").iter().map(|word| format!("'{}'", word.replace('\'', r#"'"'"'"#))).collect();
        let mut command = Command::new("crosswind");
        command
            .args(["exec", "--json", "--clock", self.clock.as_deref().unwrap_or("virtual"), "--output"])
            .arg(&directory.run);
        command.args(self.options.iter().flatten()).arg("--server").arg(server.join(" ")).arg("--").args(end("client"));
        let (_, errors) = output_of(&mut command);
        let summary = errors.trim_end().lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        let Some(summary) = summary.filter(|found| !list(&found["repetitions"]).is_empty()) else {
            panic!("{errors}{}", directory.said_by("server"));
        };
        let result = Result { summary, directory };
        for repetition in result.repetitions() {
            for warning in list(&repetition["reasons"]).iter().chain(list(&repetition["warnings"])) {
                eprintln!(
                    "crosswind: {}",
                    if text(&warning["text"]).is_empty() { text(warning) } else { text(&warning["text"]) }
                );
            }
        }
        assert!(
            self.unchecked || result.status() == 0,
            "the client ended with exit status {}\n{}",
            result.status(),
            result.directory.said_by("client")
        );
        self.judge(&result);
        result
    }

    fn judge(&self, result: &Result) {
        if self.fail_if.is_empty() && !result.directory.is_kept {
            return;
        }
        let mut command = Command::new("crosswind");
        command.arg("report").arg(&result.directory.run).arg("--json");
        if result.directory.is_kept {
            command.arg("--html").arg(result.directory.run.join("report.html"));
        }
        command.args(self.fail_if.iter().flat_map(|condition| ["--fail-if", condition]));
        let (printed, errors) = output_of(&mut command);
        let report: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{errors}"));
        let failed = list(&report["thresholds"]).iter().filter(|each| text(&each["verdict"]) != "pass");
        let said: Vec<_> = failed.map(|each| text(&each["sentence"])).collect();
        assert!(said.is_empty(), "{}", said.join("\n"));
    }
}

/// What came of a run. Counts are sums over repetitions.
#[derive(Debug)]
pub struct Result {
    summary: Value,
    directory: Directory,
}

/// One way of the path: what its packets came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Direction {
    /// Packets that were sent.
    pub packets: u64,
    /// Bytes of these IP packets.
    pub bytes: u64,
    /// Packets that arrived.
    pub delivered: u64,
    /// Bytes that arrived.
    pub delivered_bytes: u64,
    /// Packets that were dropped, by cause.
    pub drops: BTreeMap<String, u64>,
}

impl Result {
    /// The client's exit status, of several repetitions the first that is not 0; 124 at its timeout.
    pub fn status(&self) -> u64 {
        number(&self.summary["exit_status"])
    }

    /// From starting the client to its end, on the path's clock, in each repetition in which it ended by itself.
    pub fn times(&self) -> Vec<Duration> {
        let all = self.repetitions().iter().map(|each| number(&each["time_ns"]));
        all.filter(|&time_ns| time_ns > 0).map(Duration::from_nanos).collect()
    }

    /// What went from the client to the server.
    pub fn forward(&self) -> Direction {
        self.direction("forward")
    }

    /// What went from the server to the client.
    pub fn reverse(&self) -> Direction {
        self.direction("reverse")
    }

    /// Packets that both hosts sent.
    pub fn packets(&self) -> u64 {
        self.forward().packets + self.reverse().packets
    }

    /// Bytes of IP packets that both hosts sent.
    pub fn bytes(&self) -> u64 {
        self.forward().bytes + self.reverse().bytes
    }

    /// Packets that the path dropped, by cause.
    pub fn drops(&self) -> BTreeMap<String, u64> {
        let mut sums = self.forward().drops;
        for (cause, number) in self.reverse().drops {
            *sums.entry(cause).or_default() += number;
        }
        sums
    }

    /// TCP segments that both hosts' kernels sent again.
    pub fn retransmissions(&self) -> u64 {
        let all = self.repetitions().iter().map(|each| &each["tcp_retransmits"]);
        all.map(|again| number(&again["client"]) + number(&again["server"])).sum()
    }

    /// What the client printed, of each repetition in turn.
    pub fn output(&self) -> String {
        self.directory.said_by("client")
    }

    /// Where the run is kept as long as this result; with `CROSSWIND_REPORT`, for longer.
    pub fn directory(&self) -> &std::path::Path {
        &self.directory.run
    }

    fn repetitions(&self) -> &[Value] {
        list(&self.summary["repetitions"])
    }

    fn direction(&self, way: &str) -> Direction {
        let mut sum = Direction::default();
        for part in self.repetitions().iter().map(|each| &each[way]) {
            sum.packets += number(&part["packets"]);
            sum.bytes += number(&part["bytes"]);
            sum.delivered += number(&part["delivered"]);
            sum.delivered_bytes += number(&part["delivered_bytes"]);
            for (cause, count) in part["dropped"].as_object().into_iter().flatten() {
                *sum.drops.entry(cause.clone()).or_default() += number(count);
            }
        }
        sum
    }
}

/// Where a run is kept. One that is not kept goes with it.
#[derive(Debug)]
struct Directory {
    run: PathBuf,
    is_kept: bool,
}

impl Directory {
    fn of(test: &str) -> Self {
        let kept = env::var_os(REPORTS).map(PathBuf::from);
        let (is_kept, place) = (kept.is_some(), kept.unwrap_or_else(env::temp_dir));
        let name = test.replace("::", "-");
        let run = place.join(if is_kept { name } else { format!("crosswind-{}-{name}", process::id()) });
        if run.join("manifest.json").exists() {
            let _ = fs::remove_dir_all(&run); // Of an earlier run.
        }
        Self { run, is_kept }
    }

    fn said_by(&self, end: &str) -> String {
        let mut cells: Vec<_> = fs::read_dir(self.run.join("cells")).into_iter().flatten().flatten().collect();
        cells.sort_by_key(fs::DirEntry::file_name);
        let places = cells.iter().flat_map(|cell| ["out", "err"].map(|kind| cell.path().join(format!("{end}.{kind}"))));
        places.filter_map(|file| fs::read(file).ok()).map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.run);
        }
    }
}

/// The name of the test that is running: its thread has it, or, with one thread for all tests, the client within it.
fn test_name<C>() -> String {
    match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => {
            let client = std::any::type_name::<C>();
            let test = client.strip_suffix("::{{closure}}").and_then(|path| path.split_once("::"));
            test.expect("with --test-threads=1 a client has to be a closure in its test").1.to_owned()
        }
    }
}

fn address() -> SocketAddr {
    let host: Option<IpAddr> = env::var(HOST).ok().and_then(|host| host.parse().ok());
    let port = env::var(PORT).ok().and_then(|port| port.parse().ok());
    SocketAddr::new(host.unwrap_or(Ipv4Addr::LOCALHOST.into()), port.unwrap_or(0))
}

/// What Crosswind reads of a client, in the last line of what it prints.
fn say(times: &[Duration]) {
    let times: Vec<_> = times.iter().map(|time| time.as_secs_f64().to_string()).collect();
    if !times.is_empty() {
        // The test's name may stand in this line already.
        println!("\n{{\"times_s\": [{}]}}", times.join(", "));
    }
    let _ = std::io::stdout().flush();
}

fn output_of(command: &mut Command) -> (String, String) {
    match command.output() {
        Ok(ended) => {
            (String::from_utf8_lossy(&ended.stdout).into_owned(), String::from_utf8_lossy(&ended.stderr).into_owned())
        }
        Err(error) => panic!("crosswind: {error}\nhint: install Crosswind, so that `crosswind doctor` answers"),
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
