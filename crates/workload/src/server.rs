//! The server's threads: each waits for a connection, serves it to its end, and waits again. Before the last idle one
//! turns to a connection it starts another, so that a stuck connection never keeps a new one waiting.

use crate::context::{Context, join};
use crate::{WorkloadError, message};
use crosswind_host::{Clock, thread_cpu_ns};
use crosswind_path::Side;
use crosswind_transport::{Connection, Listener, Outcome, SocketReadback, Transport};
use crosswind_units::Instant;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Duration;

/// How often an idle server looks whether it is to stop, should it have missed being woken.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the server saw of one message or transfer.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The client's port.
    pub client_port: u16,
    /// What could be read of the message's number.
    pub tag: u64,
    /// First sign of it.
    pub first: Instant,
    /// When it was there whole.
    pub received: Instant,
    /// When the answer was begun.
    pub sent: Instant,
    /// Bytes received.
    pub bytes: u64,
}

/// Serves one connection to its end; the flag says that the server is to stop.
pub type Handler<'a> = dyn Fn(&AtomicBool, &mut dyn Connection, &mut Vec<Seen>) + Sync + 'a;

/// A running server.
pub struct Server<'a> {
    context: &'a Context<'a>,
    handler: &'a Handler<'a>,
    listener: Mutex<Box<dyn Listener>>,
    datagram: bool,
    timeout: Duration,
    stopping: AtomicBool,
    idle: AtomicUsize,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Box<dyn Connection>>>,
    seen: Mutex<Vec<Seen>>,
    readback: Mutex<Option<SocketReadback>>,
    cpu_ns: AtomicU64,
    failure: Mutex<Option<WorkloadError>>,
}

impl<'a> Server<'a> {
    /// Starts to listen, in the server's namespace.
    pub fn listen(
        context: &'a Context<'a>,
        transport: &'static dyn Transport,
        timeout: Duration,
        handler: &'a Handler<'a>,
    ) -> Result<Self, WorkloadError> {
        let listener =
            std::thread::scope(|scope| {
                join(context.spawn(scope, Side::Reverse, || {
                    Ok(transport.listen(context.server_address(), &context.settings)?)
                })?)
            })?;
        Ok(Self {
            context,
            handler,
            listener: Mutex::new(listener.0),
            datagram: transport.is_datagram(),
            timeout,
            stopping: AtomicBool::new(false),
            idle: AtomicUsize::new(0),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            seen: Mutex::default(),
            readback: Mutex::default(),
            cpu_ns: AtomicU64::new(0),
            failure: Mutex::default(),
        })
    }

    /// Starts the first threads: `expected` connections will be open at a time.
    pub fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, expected: u32) -> Result<(), WorkloadError> {
        // One datagram socket serves every client; a second thread on it would mix up whom to answer.
        let threads = if self.datagram { 1 } else { expected.min(16) + 1 };
        for _ in 0..threads {
            self.spawn(scope)?;
        }
        Ok(())
    }

    /// Tells every thread to end, and wakes those that wait on a connection.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        if let Ok(listener) = self.listener.lock() {
            listener.wake();
        }
        if let Ok(mut open) = self.open.lock() {
            for connection in open.values_mut() {
                // It may have ended by itself.
                let _ = connection.abort();
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// What was seen, once every thread has ended; or what kept one from serving.
    pub fn into_seen(self) -> Result<(SeenByPort, Option<SocketReadback>, u64), WorkloadError> {
        if let Ok(Some(error)) = self.failure.into_inner() {
            return Err(error);
        }
        let seen = self.seen.into_inner().unwrap_or_default();
        let readback = self.readback.into_inner().unwrap_or_default();
        Ok((SeenByPort::new(seen), readback, self.cpu_ns.into_inner()))
    }

    fn spawn<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<(), WorkloadError> {
        self.idle.fetch_add(1, Ordering::AcqRel);
        self.context.spawn(scope, Side::Reverse, move || {
            let served = self.serve(scope);
            self.cpu_ns.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
            if let (Err(error), Ok(mut failure)) = (served, self.failure.lock()) {
                failure.get_or_insert(error);
            }
            Ok(())
        })?;
        Ok(())
    }

    fn serve<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<(), WorkloadError> {
        let listener = match self.listener.lock() {
            Ok(listener) => listener.try_clone()?,
            Err(_) => return Err(WorkloadError::Panicked),
        };
        while !self.is_stopping() {
            let mut connection = match listener.accept(PATIENCE) {
                Ok(connection) => connection,
                Err(e) if e.outcome == Outcome::Timeout || self.is_stopping() => continue,
                Err(e) => return Err(e.into()),
            };
            let last_idle = self.idle.fetch_sub(1, Ordering::AcqRel) == 1;
            if last_idle && !self.datagram {
                self.spawn(scope)?;
            }
            self.serve_connection(connection.as_mut());
            drop(connection);
            self.idle.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn serve_connection(&self, connection: &mut dyn Connection) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        // Without settings of its own the connection still serves; it then times out as the listener does.
        let _ = connection.set_timeout(if self.datagram { PATIENCE } else { self.timeout });
        if number == 0
            && let (Ok(readback), Ok(mut place)) = (connection.readback(), self.readback.lock())
        {
            *place = Some(readback);
        }
        if let (Ok(handle), Ok(mut open)) = (connection.try_clone(), self.open.lock()) {
            open.insert(number, handle);
        }
        let mut seen = Vec::new();
        if !self.is_stopping() {
            (self.handler)(&self.stopping, connection, &mut seen);
        }
        if let Ok(mut open) = self.open.lock() {
            open.remove(&number);
        }
        if let Ok(mut all) = self.seen.lock() {
            all.append(&mut seen);
        }
    }
}

/// What the server saw, to be found by port and time.
pub struct SeenByPort(HashMap<u16, Vec<Seen>>);

impl SeenByPort {
    fn new(seen: Vec<Seen>) -> Self {
        let mut by_port: HashMap<u16, Vec<Seen>> = HashMap::new();
        for one in seen {
            by_port.entry(one.client_port).or_default().push(one);
        }
        for list in by_port.values_mut() {
            list.sort_by_key(|seen| seen.received);
        }
        Self(by_port)
    }

    /// The first sight from `client_port` not before `after`, with this tag if one is given.
    pub fn find(&self, client_port: u16, after: Instant, tag: Option<u64>) -> Option<Seen> {
        let list = self.0.get(&client_port)?;
        let from = list.partition_point(|seen| seen.received < after);
        list[from..].iter().find(|seen| tag.is_none_or(|tag| tag == seen.tag)).copied()
    }
}

/// Answers every message of `size` bytes with itself.
pub fn echo(clock: Clock, size: usize, stopping: &AtomicBool, connection: &mut dyn Connection, seen: &mut Vec<Seen>) {
    let mut buffer = vec![0; size];
    loop {
        let length = match connection.receive(&mut buffer) {
            Ok(length) => length,
            Err(e) if e.outcome == Outcome::Timeout && !stopping.load(Ordering::Acquire) => continue,
            Err(_) => return,
        };
        let received = clock.now();
        let message = &buffer[..length];
        // A lost answer is the client's to see; a connection that is gone ends at the next receive.
        let sent = clock.now();
        let _ = connection.send(message);
        seen.push(Seen {
            client_port: connection.client_port(),
            tag: message::read(message),
            first: received,
            received,
            sent,
            bytes: length as u64,
        });
    }
}
