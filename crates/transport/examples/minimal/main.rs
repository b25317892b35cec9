//! What the transports are compared with (`benches/transports.py`): programs that drive the same libraries plainly.
//!
//!     minimal certificate DIRECTORY                       makes what both ends of a secure transport read
//!     minimal server TRANSPORT ADDRESS DIRECTORY          answers one client after another, until killed
//!     minimal client TRANSPORT ADDRESS DIRECTORY echo COUNT
//!     minimal client quic-bulk|http3-bulk ADDRESS DIRECTORY upload|download BYTES
//!
//! Each end is one thread, and prints its results as JSON. Every setting has the value that Crosswind gives it.

mod http;
mod http3;
mod plain;
mod quic;
mod security;
mod socketio;
mod tls;
mod websocket;
mod webtransport;

use security::Security;
use serde_json::json;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const TIMEOUT: Duration = Duration::from_mins(1);
/// Round trips at the start, not counted.
const WARM_UP: usize = 200;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["certificate", directory] => Security::create(Path::new(directory)),
        ["server", transport, address, directory] => {
            serve(transport, address.parse()?, &Security::read(Path::new(directory))?)
        }
        ["client", transport, address, directory, "echo", count] => {
            let mut times = Times::new(count.parse()?);
            echo(transport, address.parse()?, &Security::read(Path::new(directory))?, &mut times)?;
            println!("{}", times.report()?);
            Ok(())
        }
        ["client", transport, address, directory, direction @ ("upload" | "download"), bytes] => {
            let (up, down) = if direction == "upload" { (bytes.parse()?, 0) } else { (0, bytes.parse()?) };
            let security = Security::read(Path::new(directory))?;
            let took = match transport {
                "quic-bulk" => on_one_thread(quic::transfer(address.parse()?, &security, up, down))?,
                "http3-bulk" => on_one_thread(http3::transfer(address.parse()?, &security, up, down))?,
                _ => return Err(format!("no bulk over {transport}").into()),
            };
            println!("{}", json!({"bytes": up + down, "elapsed_ns": nanoseconds(took), "cpu_ns": cpu_ns()?}));
            Ok(())
        }
        _ => Err("its arguments are in the first lines of its source".into()),
    }
}

fn serve(transport: &str, address: SocketAddr, security: &Security) -> Result<()> {
    match transport {
        "tcp" => plain::serve_tcp(address),
        "udp" => plain::serve_udp(address),
        "tls" => on_one_thread(tls::serve(address, security)),
        "http1" | "https1" | "h2c" | "http2" => on_one_thread(http::serve(transport, address, security)),
        "http3" => on_one_thread(http3::serve(address, security, false)),
        "http3-bulk" => on_one_thread(http3::serve(address, security, true)),
        "websocket" | "wss" => on_one_thread(websocket::serve(transport, address, security)),
        "quic" => on_one_thread(quic::serve_stream(address, security)),
        "quic-datagram" => on_one_thread(quic::serve_datagrams(address, security)),
        "quic-bulk" => on_one_thread(quic::serve_bulk(address, security)),
        "webtransport" => on_one_thread(webtransport::serve_stream(address, security)),
        "webtransport-datagram" => on_one_thread(webtransport::serve_datagrams(address, security)),
        "socketio-websocket" => on_one_thread(socketio::serve_websocket(address)),
        "socketio-webtransport" => on_one_thread(socketio::serve_webtransport(address, security)),
        _ => Err(format!("no such transport: {transport}").into()),
    }
}

fn echo(transport: &str, address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    match transport {
        "tcp" => plain::echo_tcp(address, times),
        "udp" => plain::echo_udp(address, times),
        "tls" => on_one_thread(tls::echo(address, security, times)),
        "http1" | "https1" | "h2c" | "http2" => on_one_thread(http::echo(transport, address, security, times)),
        "http3" => on_one_thread(http3::echo(address, security, times)),
        "websocket" | "wss" => on_one_thread(websocket::echo(transport, address, security, times)),
        "quic" => on_one_thread(quic::echo_stream(address, security, times)),
        "quic-datagram" => on_one_thread(quic::echo_datagrams(address, security, times)),
        "webtransport" => on_one_thread(webtransport::echo_stream(address, security, times)),
        "webtransport-datagram" => on_one_thread(webtransport::echo_datagrams(address, security, times)),
        "socketio-websocket" => on_one_thread(socketio::echo_websocket(address, times)),
        "socketio-webtransport" => on_one_thread(socketio::echo_webtransport(address, security, times)),
        _ => Err(format!("no such transport: {transport}").into()),
    }
}

fn on_one_thread<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// An exchange with a time limit, as in every program waiting for a server.
pub(crate) async fn within<T>(exchange: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(TIMEOUT, exchange).await?
}

/// Round-trip times for messages of one character.
pub(crate) struct Times {
    count: usize,
    taken: Vec<Duration>,
}

impl Times {
    fn new(count: usize) -> Self {
        Self { count, taken: Vec::with_capacity(count) }
    }

    pub(crate) fn messages(&self) -> impl Iterator<Item = [u8; 1]> + use<> {
        (b'a'..=b'z').cycle().map(|letter| [letter]).take(self.count)
    }

    /// The reply to the message sent at `sent` has just been received.
    pub(crate) fn received(&mut self, sent: Instant, reply: &[u8], message: &[u8]) -> Result<()> {
        self.taken.push(sent.elapsed());
        if reply == message { Ok(()) } else { Err(format!("{message:?} came back as {reply:?}").into()) }
    }

    fn report(mut self) -> Result<serde_json::Value> {
        let counted = self.taken.get_mut(WARM_UP..).filter(|counted| !counted.is_empty());
        let counted = counted.ok_or_else(|| format!("no more than {WARM_UP} messages"))?;
        counted.sort_unstable();
        let quantile = |percent: usize| nanoseconds(counted[(counted.len() - 1) * percent / 100]);
        Ok(json!({
            "n": counted.len(), "p10_ns": quantile(10), "p50_ns": quantile(50), "p90_ns": quantile(90), "cpu_ns": cpu_ns()?,
        }))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// This thread's processor time so far.
pub(crate) fn cpu_ns() -> Result<u64> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(statistics.split_whitespace().next().ok_or("/proc/thread-self/schedstat is empty")?.parse()?)
}
