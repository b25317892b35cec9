//! The server. On threads each waits for a connection, serves it to its end, and waits again; before the last idle one turns to
//! a connection it starts another, so that a stuck connection never keeps a new one waiting. On a reactor one thread serves all.

use crate::WorkloadError;
use crate::context::{Context, join};
use crosswind_host::thread_cpu_ns;
use crosswind_path::Side;
use crosswind_transport::{
    Connection, Driver, Features, Listener, Outcome, SocketReadback, Stream, Streams, TransportError, TransportRef,
    serving,
};
use crosswind_units::Instant;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Duration;
use tokio::sync::Notify;

/// How often an idle server looks whether it is to stop, should it have missed being woken.
const PATIENCE: Duration = Duration::from_millis(500);
/// A reactor's server waits for as long as it takes: it is told to stop.
const FOREVER: Duration = Duration::from_hours(24);

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

/// A stream to be served.
pub struct Serve<'a> {
    /// The server is to stop.
    pub stopping: &'a AtomicBool,
    /// What to serve.
    pub stream: Stream,
    /// Whose it is.
    pub client_port: u16,
    /// No stream has more than one: it is a request.
    pub one_message: bool,
    seen: Vec<Seen>,
    all: &'a Mutex<Vec<Seen>>,
}

impl Serve<'_> {
    /// Keeps what was seen.
    pub fn saw(&mut self, seen: Seen) {
        self.seen.push(seen);
    }

    /// The client's port, of the last message.
    pub fn port(&self) -> u16 {
        self.stream.receiver.client_port().unwrap_or(self.client_port)
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        // However it ended: a reactor that stops drops what is under way.
        if let Ok(mut all) = self.all.lock() {
            all.append(&mut self.seen);
        }
    }
}

/// What a reactor's server waited for.
enum Done {
    Stopped,
    Accepted(Result<Box<dyn Connection>, TransportError>),
    Served,
}

/// Work under way, on a thread of its own or among others on a reactor.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Serves one stream to its end.
pub type Handler<'a> = dyn for<'s> Fn(Serve<'s>) -> Work<'s, ()> + Sync + 'a;

/// A running server.
pub struct Server<'a> {
    context: &'a Context<'a>,
    transport: TransportRef,
    handler: &'a Handler<'a>,
    timeout: Duration,
    stopping: AtomicBool,
    stop: Notify,
    wake: Mutex<Option<Box<dyn Listener>>>,
    idle: AtomicUsize,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Box<dyn Fn() + Send>>>,
    seen: Mutex<Vec<Seen>>,
    readback: Mutex<Option<SocketReadback>>,
    cpu_ns: AtomicU64,
    failure: Mutex<Option<WorkloadError>>,
}

impl<'a> Server<'a> {
    /// One that does not yet listen.
    pub fn new(context: &'a Context<'a>, transport: TransportRef, timeout: Duration, handler: &'a Handler<'a>) -> Self {
        Self {
            context,
            transport,
            handler,
            timeout,
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            wake: Mutex::default(),
            idle: AtomicUsize::new(0),
            next: AtomicU64::new(0),
            open: Mutex::default(),
            seen: Mutex::default(),
            readback: Mutex::default(),
            cpu_ns: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    /// Starts to listen and the first threads: `expected` connections will be open at a time. It listens when this returns.
    pub fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, expected: u32) -> Result<(), WorkloadError> {
        match self.transport.features().driver {
            Driver::Thread => {
                let listener =
                    join(self.context.spawn(scope, Side::Reverse, || Driver::Thread.run(self.listen())?)?)?.0;
                // One datagram socket serves every client; a second thread on it would mix up whom to answer.
                let threads = if self.transport.features().datagram { 1 } else { expected.min(16) + 1 };
                let handles = (0..threads).map(|_| listener.try_clone()).collect::<Result<Vec<_>, _>>()?;
                if let Ok(mut wake) = self.wake.lock() {
                    *wake = Some(listener);
                }
                handles.into_iter().try_for_each(|handle| self.spawn(scope, handle))
            }
            Driver::Reactor => {
                let (listening, listens) = std::sync::mpsc::channel();
                self.context.spawn(scope, Side::Reverse, move || {
                    let served = Driver::Reactor.run(async {
                        let listener = self.listen().await;
                        let (result, listener) = match listener {
                            Ok(listener) => (Ok(()), Some(listener)),
                            Err(error) => (Err(error), None),
                        };
                        // Whoever started it is still there, or nobody needs it.
                        let _ = listening.send(result);
                        if let Some(listener) = listener {
                            self.serve_all(listener.as_ref()).await;
                        }
                    });
                    self.ended(served.map_err(Into::into));
                    Ok(())
                })?;
                listens.recv().unwrap_or(Err(WorkloadError::Panicked))
            }
        }
    }

    /// Tells every thread to end, and wakes those that wait on a connection.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop.notify_one();
        if let Ok(listener) = self.wake.lock()
            && let Some(listener) = &*listener
        {
            listener.wake();
        }
        if let Ok(mut open) = self.open.lock() {
            for interrupt in open.values_mut() {
                interrupt();
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

    async fn listen(&self) -> Result<Box<dyn Listener>, WorkloadError> {
        Ok(self.transport.listen(self.context.server_address(), &self.context.settings).await?)
    }

    fn ended(&self, served: Result<(), WorkloadError>) {
        self.cpu_ns.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
        if let (Err(error), Ok(mut failure)) = (served, self.failure.lock()) {
            failure.get_or_insert(error);
        }
    }

    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        listener: Box<dyn Listener>,
    ) -> Result<(), WorkloadError> {
        self.idle.fetch_add(1, Ordering::AcqRel);
        self.context.spawn(scope, Side::Reverse, move || {
            self.ended(self.serve_in_turn(scope, listener.as_ref()));
            Ok(())
        })?;
        Ok(())
    }

    /// One thread's work: connection after connection.
    fn serve_in_turn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        listener: &dyn Listener,
    ) -> Result<(), WorkloadError> {
        let datagram = self.transport.features().datagram;
        while !self.is_stopping() {
            let connection = match Driver::Thread.run(listener.accept(PATIENCE))? {
                Ok(connection) => connection,
                Err(e) if e.outcome == Outcome::Timeout || self.is_stopping() => continue,
                Err(e) => return Err(e.into()),
            };
            let last_idle = self.idle.fetch_sub(1, Ordering::AcqRel) == 1;
            if last_idle && !datagram {
                self.spawn(scope, listener.try_clone()?)?;
            }
            Driver::Thread.run(self.serve_connection(connection))?;
            self.idle.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// A reactor's work: all connections at once. Each is polled only when it was woken, and so is the wait for the next.
    async fn serve_all(&self, listener: &dyn Listener) {
        let mut works = FuturesUnordered::<Work<'_, Done>>::new();
        works.push(Box::pin(async {
            self.stop.notified().await;
            Done::Stopped
        }));
        let next = || -> Work<'_, Done> { Box::pin(async { Done::Accepted(listener.accept(FOREVER).await) }) };
        works.push(next());
        while let Some(done) = works.next().await {
            match done {
                Done::Stopped => return,
                Done::Served => {}
                Done::Accepted(accepted) => {
                    match accepted {
                        Ok(connection) => works.push(Box::pin(async {
                            self.serve_connection(connection).await;
                            Done::Served
                        })),
                        // A connection that went before it was taken, or no file descriptors: the client sees it.
                        Err(_) => tokio::task::yield_now().await,
                    }
                    works.push(next());
                }
            }
        }
    }

    async fn serve_connection(&self, mut connection: Box<dyn Connection>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let (Some(interrupt), Ok(mut open)) = (connection.interrupter(), self.open.lock()) {
            open.insert(number, interrupt);
        }
        if !self.is_stopping() {
            self.serve_streams(number, connection.as_mut()).await;
        }
        if let Ok(mut open) = self.open.lock() {
            open.remove(&number);
        }
    }

    async fn serve_streams(&self, number: u64, connection: &mut dyn Connection) {
        let features = self.transport.features();
        if features.driver == Driver::Thread || features.streams == Streams::One {
            if let Ok(stream) = connection.accept().await {
                self.read_back(number, connection);
                (self.handler)(self.serve(stream, connection.client_port())).await;
            }
            return;
        }
        let mut first = true;
        serving::side_by_side(connection, |connection, stream| {
            if std::mem::take(&mut first) {
                self.read_back(number, connection);
            }
            (self.handler)(self.serve(stream, connection.client_port()))
        })
        .await;
    }

    fn read_back(&self, number: u64, connection: &dyn Connection) {
        if number == 0
            && let (Ok(readback), Ok(mut place)) = (connection.readback(), self.readback.lock())
        {
            *place = Some(readback);
        }
    }

    fn serve(&self, mut stream: Stream, client_port: u16) -> Serve<'_> {
        // Without a timeout of its own it still serves; it then times out as the listener does.
        let Features { datagram, http, .. } = self.transport.features();
        let _ = stream.receiver.set_timeout(if datagram { PATIENCE } else { self.timeout });
        let (stopping, all) = (&self.stopping, &self.seen);
        Serve { stopping, stream, client_port, one_message: http, seen: Vec::new(), all }
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
