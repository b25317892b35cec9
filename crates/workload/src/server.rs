//! A workload's server. With blocking calls, each thread serves a connection to its end and waits for the next; before
//! the last idle thread turns to a connection it starts another thread, so a stuck connection never keeps a new one
//! waiting. On a reactor, one thread serves all connections.

use crate::WorkloadError;
use crate::context::{Context, join};
use crate::needs::ConnectionNeeds;
use crate::served::Served;
use crate::server_observation::ServerObservation;
use crate::serving::{serve_connections, serve_streams};
use crosswind_host::thread_cpu_ns;
use crosswind_path::Side;
use crosswind_transport::{Connection, Driver, Features, Listener, Outcome, SocketReadback, Stream};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Duration;
use tokio::sync::Notify;

/// How often an idle server looks whether it is to stop, should it have missed being woken.
const IDLE_WAIT: Duration = Duration::from_millis(500);
/// More threads than this are started only when they are needed.
const MAX_INITIAL_THREADS: u32 = 16;

/// Serves the streams opened by clients.
pub(crate) trait ServeStream: Sync {
    /// Serves one stream to its end.
    async fn serve(&self, stream: ServerStream<'_>);
}

/// A stream to be served.
pub struct ServerStream<'a> {
    /// The server is to stop.
    pub stopping: &'a AtomicBool,
    /// The stream to serve.
    pub stream: Stream,
    pub client_port: u16,
    /// No stream carries more than one message: it is a request.
    pub one_message: bool,
    /// Whether notes are kept.
    keeps: bool,
    observations: Vec<ServerObservation>,
    all: &'a Mutex<Vec<ServerObservation>>,
}

impl ServerStream<'_> {
    /// Keeps an observation of a message.
    pub fn note(&mut self, observation: ServerObservation) {
        if self.keeps {
            self.observations.push(observation);
        }
    }

    /// The client's port of the last message.
    pub fn sender_port(&self) -> u16 {
        self.stream.receiver.client_port().unwrap_or(self.client_port)
    }
}

impl Drop for ServerStream<'_> {
    fn drop(&mut self) {
        // However it ended: a stopping reactor drops work under way.
        if let Ok(mut all) = self.all.lock() {
            all.append(&mut self.observations);
        }
    }
}

/// Ends every wait on a connection, from another thread.
type Interrupt = Box<dyn Fn() + Send>;

/// A running server.
pub struct Server<'a, S> {
    context: &'a Context<'a>,
    needs: ConnectionNeeds,
    serve: &'a S,
    stopping: AtomicBool,
    /// Stops a reactor.
    stop: Notify,
    /// Wakes threads waiting for a connection.
    listener: Mutex<Option<Box<dyn Listener>>>,
    idle: AtomicUsize,
    connections: AtomicU64,
    /// Wakes threads waiting on a connection.
    open: Mutex<HashMap<u64, Interrupt>>,
    observations: Mutex<Vec<ServerObservation>>,
    readback: Mutex<Option<SocketReadback>>,
    cpu_ns: AtomicU64,
    failure: Mutex<Option<WorkloadError>>,
}

impl<'a, S: ServeStream> Server<'a, S> {
    /// A server before it listens.
    pub fn new(context: &'a Context<'a>, needs: ConnectionNeeds, serve: &'a S) -> Self {
        Self {
            context,
            needs,
            serve,
            stopping: AtomicBool::new(false),
            stop: Notify::new(),
            listener: Mutex::default(),
            idle: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            open: Mutex::default(),
            observations: Mutex::default(),
            readback: Mutex::default(),
            cpu_ns: AtomicU64::new(0),
            failure: Mutex::default(),
        }
    }

    /// Starts to listen, and the first threads for `expected` concurrent connections. It listens when this returns.
    pub fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, expected: u32) -> Result<(), WorkloadError> {
        let started = match self.features().driver {
            Driver::Thread => self.start_threads(scope, expected),
            Driver::Reactor => self.start_reactor(scope),
        };
        if started.is_err() {
            // Or the running threads would be waited for without end.
            self.stop();
        }
        started
    }

    /// Tells every thread to end, and wakes those waiting on a connection.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop.notify_one();
        if let Ok(listener) = self.listener.lock()
            && let Some(listener) = &*listener
        {
            listener.wake();
        }
        if let Ok(open) = self.open.lock() {
            for interrupt in open.values() {
                interrupt();
            }
        }
    }

    /// Its results, once every thread has ended; or the reason one of them could not serve.
    pub fn into_served(self) -> Result<Served, WorkloadError> {
        if let Ok(Some(error)) = self.failure.into_inner() {
            return Err(error);
        }
        Ok(Served {
            observations: self.observations.into_inner().unwrap_or_default(),
            readback: self.readback.into_inner().unwrap_or_default(),
            cpu_ns: self.cpu_ns.into_inner(),
        })
    }

    fn features(&self) -> Features {
        self.needs.transport.features()
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    async fn listen(&self) -> Result<Box<dyn Listener>, WorkloadError> {
        Ok(self.needs.transport.listen(self.context.server_address(), &self.context.settings).await?)
    }

    fn ended(&self, served: Result<(), WorkloadError>) {
        self.cpu_ns.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
        if let (Err(error), Ok(mut failure)) = (served, self.failure.lock()) {
            failure.get_or_insert(error);
        }
    }

    fn start_threads<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        expected: u32,
    ) -> Result<(), WorkloadError> {
        let listening = self.context.spawn(scope, Side::Reverse, || Driver::Thread.run(self.listen())?)?;
        let (listener, _) = join(listening)?;
        // One datagram socket serves every client; a second thread on it would mix up whom to answer.
        let threads = if self.features().datagram { 1 } else { expected.min(MAX_INITIAL_THREADS) + 1 };
        let handles = (0..threads).map(|_| listener.try_clone()).collect::<Result<Vec<_>, _>>()?;
        if let Ok(mut place) = self.listener.lock() {
            *place = Some(listener);
        }
        handles.into_iter().try_for_each(|handle| self.start_thread(scope, handle))
    }

    fn start_thread<'scope>(
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
        let datagram = self.features().datagram;
        while !self.is_stopping() {
            let connection = match Driver::Thread.run(listener.accept(IDLE_WAIT))? {
                Ok(connection) => connection,
                Err(e) if e.outcome == Outcome::Timeout || self.is_stopping() => continue,
                Err(e) => return Err(e.into()),
            };
            let last_idle = self.idle.fetch_sub(1, Ordering::AcqRel) == 1;
            if last_idle && !datagram {
                self.start_thread(scope, listener.try_clone()?)?;
            }
            Driver::Thread.run(self.serve_connection(connection))?;
            self.idle.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn start_reactor<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Result<(), WorkloadError> {
        let (listening, listens) = std::sync::mpsc::channel();
        self.context.spawn(scope, Side::Reverse, move || {
            let served = Driver::Reactor.run(async {
                let (result, listener) = match self.listen().await {
                    Ok(listener) => (Ok(()), Some(listener)),
                    Err(error) => (Err(error), None),
                };
                // Whoever started the server still waits for this, or nobody needs it.
                let _ = listening.send(result);
                if let Some(listener) = listener {
                    let serve = |connection| self.serve_connection(connection);
                    serve_connections(listener.as_ref(), self.stop.notified(), serve).await;
                }
            });
            self.ended(served.map_err(Into::into));
            Ok(())
        })?;
        listens.recv().unwrap_or(Err(WorkloadError::Panicked))
    }

    async fn serve_connection(&self, mut connection: Box<dyn Connection>) {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        if let (Some(interrupt), Ok(mut open)) = (connection.interrupter(), self.open.lock()) {
            open.insert(number, interrupt);
        }
        let is_admitted = self.context.allowance.as_ref().is_none_or(|allowance| allowance.admits());
        if is_admitted && !self.is_stopping() {
            let mut first_of_all = number == 0;
            serve_streams(self.features(), connection.as_mut(), |connection, stream| {
                if std::mem::take(&mut first_of_all) {
                    self.read_back(connection);
                }
                self.serve.serve(self.server_stream(stream, connection.client_port()))
            })
            .await;
        }
        if let Ok(mut open) = self.open.lock() {
            open.remove(&number);
        }
    }

    fn read_back(&self, connection: &dyn Connection) {
        if let (Ok(readback), Ok(mut place)) = (connection.readback(), self.readback.lock()) {
            *place = Some(readback);
        }
    }

    fn server_stream(&self, stream: Stream, client_port: u16) -> ServerStream<'_> {
        let mut stream = match &self.context.allowance {
            Some(allowance) => allowance.bound(stream),
            None => stream,
        };
        let Features { datagram, http, .. } = self.features();
        // Without a timeout of its own it still serves; it then times out as the listener does.
        let _ = stream.receiver.set_timeout(if datagram { IDLE_WAIT } else { self.needs.timeout });
        let (stopping, all) = (&self.stopping, &self.observations);
        let keeps = !self.context.allowance.as_ref().is_some_and(|allowance| allowance.numbers_answers());
        ServerStream { stopping, stream, client_port, one_message: http, keeps, observations: Vec::new(), all }
    }
}
