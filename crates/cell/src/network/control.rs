//! The control connection between two machines: messages over TLS 1.3.

use super::parts::{Parts, with_length};
use super::token::Material;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ConnectionCommon, ServerConnection, StreamOwned};
use serde::Serialize;
use serde::de::DeserializeOwned;
use socket2::{SockRef, TcpKeepalive};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The protocol for control connections (ALPN).
pub const PROTOCOL: &[u8] = b"crosswind-control/1";
/// The largest part of a message, bytes; and before the peer has proven the token.
const LARGEST: usize = 4 << 20;
const LARGEST_OF_STRANGERS: usize = 4096;
/// Bytes per part of a longer message.
pub const PART: usize = 1 << 20;
/// How long a client waits while the server measures for another one.
pub const BUSY_LIMIT: Duration = Duration::from_secs(30);
/// The keying material's label (RFC 5705, section 4).
const LABEL: &[u8] = b"EXPORTER-crosswind-token";
/// A peer silent at TCP level for so long is gone.
const SILENCE: Duration = Duration::from_secs(15);
/// A read's minimum timeout: for the kernel zero means forever.
const SHORTEST_READ: Duration = Duration::from_micros(1);

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// One end of a control connection.
pub struct Control {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    inbox: Parts,
}

impl Control {
    /// The client's end, and the connection's keying material.
    pub fn connect(
        socket: TcpStream,
        config: Arc<rustls::ClientConfig>,
        limit: Duration,
    ) -> io::Result<(Self, Material)> {
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let material = shake_hands(&mut tls, &socket, limit)?;
        Ok((Self::new(StreamOwned::new(tls, socket.try_clone()?), socket), material))
    }

    /// The server's.
    pub fn accept(
        socket: TcpStream,
        config: Arc<rustls::ServerConfig>,
        limit: Duration,
    ) -> io::Result<(Self, Material)> {
        let mut tls = ServerConnection::new(config).map_err(io::Error::other)?;
        let material = shake_hands(&mut tls, &socket, limit)?;
        Ok((Self::new(StreamOwned::new(tls, socket.try_clone()?), socket), material))
    }

    fn new(stream: impl Stream + 'static, socket: TcpStream) -> Self {
        Self { stream: Box::new(stream), socket, inbox: Parts::new(LARGEST_OF_STRANGERS) }
    }

    /// The other end has proven the token.
    pub fn trust(&mut self) {
        self.inbox.allow(LARGEST);
    }

    /// This machine's address on the way to the other one.
    pub fn local_address(&self) -> io::Result<std::net::SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends a message.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.send_bytes(&serde_json::to_vec(message)?)
    }

    /// Sends bytes as one part of a message.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.set_write_timeout(Some(SILENCE))?;
        self.stream.write_all(&with_length(bytes))?;
        self.stream.flush()
    }

    /// The next message, if it is there within `limit`. `UnexpectedEof`: the other end is gone.
    pub fn receive<T: DeserializeOwned>(&mut self, limit: Duration) -> io::Result<Option<T>> {
        let bytes = self.receive_bytes(limit)?;
        bytes.map(|bytes| serde_json::from_slice(&bytes).map_err(io::Error::from)).transpose()
    }

    /// The next part of a message, likewise.
    pub fn receive_bytes(&mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let until = Instant::now() + limit;
        let mut buffer = [0; 16 * 1024];
        let mut has_read = false;
        loop {
            if let Some(bytes) = self.inbox.poll_part().map_err(io::Error::other)? {
                return Ok(Some(bytes));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && has_read {
                return Ok(None);
            }
            // Once even without time left: only a read detects the other end's absence.
            has_read = true;
            self.socket.set_read_timeout(Some(left.max(SHORTEST_READ)))?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.inbox.handle_bytes(&buffer[..count]),
                // The limit is over. TimedOut is something else: the kernel has given the connection up.
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Sets a socket to notice within seconds that the other machine is gone.
pub fn notice_silence(socket: &TcpStream) -> io::Result<()> {
    let probes = TcpKeepalive::new().with_time(SILENCE / 3).with_interval(SILENCE / 3).with_retries(2);
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(SILENCE))
}

/// The TLS handshake, within `limit`, however slowly its bytes come.
fn shake_hands<T>(tls: &mut ConnectionCommon<T>, mut socket: &TcpStream, limit: Duration) -> io::Result<Material> {
    let until = Instant::now() + limit;
    socket.set_write_timeout(Some(limit))?;
    loop {
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
        if !tls.is_handshaking() {
            return tls.export_keying_material([0; 32], LABEL, None).map_err(io::Error::other);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        match tls.read_tls(&mut socket) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        if let Err(error) = tls.process_new_packets() {
            // Its alert tells the other end why.
            let _ = tls.write_tls(&mut socket);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
    }
}

/// The running kernel's boot id.
pub fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}
