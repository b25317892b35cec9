//! A client's tools: it opens connections, and bounds its waits.

use crate::context::Context;
use crate::ending::stopped;
use crate::message::{Messages, Sizes};
use crate::needs::ConnectionNeeds;
use crate::pace::Pace;
use crate::{Sample, SetupTimes};
use crosswind_transport::{
    Connection, Driver, Features, Phases, Purpose, Resumption, SocketReadback, Stream, Streams, TransportError,
};
use crosswind_units::Instant;
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

/// The time limit for an orderly close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// One of several concurrent clients, with its tools.
pub struct Client<'a> {
    pub context: &'a Context<'a>,
    pub needs: ConnectionNeeds,
    /// Its number among those side by side.
    pub number: u32,
    /// Sizes of a message and its answer, for settling connections.
    pub sizes: Sizes,
    pub readback: &'a OnceLock<SocketReadback>,
}

/// A new connection.
pub struct Opened {
    pub connection: Box<dyn Connection>,
    /// When it was asked for.
    pub began: Instant,
    /// How long it took.
    pub took_ns: u64,
    /// The duration of each setup step.
    pub phases: Phases,
}

impl Client<'_> {
    pub fn features(&self) -> Features {
        self.needs.transport.features()
    }

    pub fn driver(&self) -> Driver {
        self.features().driver
    }

    pub const fn timeout(&self) -> Duration {
        self.needs.timeout
    }

    pub const fn messages(&self) -> Messages {
        Messages { payload: self.needs.payload }
    }

    /// Whether each message needs a stream of its own.
    pub fn stream_per_message(&self) -> bool {
        self.features().streams == Streams::PerMessage
    }

    /// Whether setting up a connection takes packets. A socket for plain datagrams takes none.
    pub fn connections_take_packets(&self) -> bool {
        let features = self.features();
        !features.datagram || features.secure
    }

    /// Its exchanges' numbers among `count`, shared by a workload's clients.
    pub fn numbers(&self, count: u64, clients: u32) -> impl Iterator<Item = u64> + use<> {
        (u64::from(self.number)..count).step_by(clients as usize)
    }

    /// `call`, bounded by the client's timeout.
    pub async fn within<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        self.until_over(what, self.driver().within(self.timeout(), what, call)).await
    }

    /// `call`, unless the flow ends before, where nothing else could interrupt it.
    pub async fn until_over<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        match (self.driver(), self.context.ending) {
            (Driver::Reactor, Some(ending)) => ending.bound(what, call).await,
            _ => call.await,
        }
    }

    /// Waits until a message is due; false if the flow was ended before.
    pub async fn until_due(&self, pace: &Pace, due: Instant) -> bool {
        let clock = self.context.clock();
        match (self.driver(), self.context.ending) {
            (_, None) => {
                pace.until(clock, due).await;
                true
            }
            (Driver::Thread, Some(ending)) => ending.wait_until(clock, due),
            (Driver::Reactor, Some(ending)) => {
                let waiting = async {
                    pace.until(clock, due).await;
                    Ok(())
                };
                ending.bound("cannot wait", waiting).await.is_ok()
            }
        }
    }

    /// Whether there is no next exchange: the flow was ended.
    pub fn is_over(&self) -> bool {
        self.context.is_over()
    }

    /// Opens a connection.
    pub async fn open(&self) -> Result<Opened, TransportError> {
        let clock = self.context.clock();
        let before = clock.now();
        let connection = self.connect().await?;
        let took_ns = (clock.now() - before).as_nanos();
        if self.readback.get().is_none()
            && let Ok(found) = connection.readback()
        {
            let _ = self.readback.set(found);
        }
        let phases = connection.phases();
        self.context.resumptions.count(self.needs.resumption, &phases);
        Ok(Opened { connection, began: before, took_ns, phases })
    }

    /// For resumption: sets up an uncounted connection, so that the first counted one has a session to resume.
    pub async fn prime(&self) {
        if self.needs.resumption == Resumption::None {
            return;
        }
        // Failures to set up this connection affect the counted ones too, and show in their samples.
        if let Ok(mut opened) = self.connect().await {
            let _ = self.settle(opened.as_ref()).await;
            self.close(opened.as_mut()).await;
        }
    }

    /// The transport itself holds this to the timeout.
    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        if self.is_over() {
            return Err(stopped("cannot connect"));
        }
        let call = self.needs.transport.connect(self.context.server_address(), &self.context.settings, self.timeout());
        let connection = self.until_over("cannot connect", call).await?;
        if let (Some(ending), Some(interrupt)) = (self.context.ending, connection.interrupter()) {
            ending.watch(interrupt);
        }
        Ok(connection)
    }

    /// Makes an uncounted exchange. At its end, the server's session ticket has arrived.
    pub async fn settle(&self, connection: &dyn Connection) -> Result<(), TransportError> {
        self.within("cannot exchange", async {
            let mut stream = connection.open(Purpose::Messages).await?;
            exchange(&mut stream, &self.messages().buffer(self.sizes.request), &mut vec![0; self.sizes.reply]).await?;
            stream.sender.finish().await
        })
        .await
    }

    /// Ends a connection in an orderly way.
    pub async fn close(&self, connection: &mut dyn Connection) {
        // A dead connection counts as closed.
        let _ = self.driver().within(CLOSE_TIMEOUT, "cannot close", connection.close()).await;
    }
}

impl Opened {
    /// How the connection was set up.
    pub fn setup(&self) -> SetupTimes {
        let ns = |phase: Option<Duration>| phase.map(|phase| phase.as_nanos() as u64);
        SetupTimes {
            began: Some(self.began),
            total_ns: self.took_ns,
            transport_ns: ns(self.phases.transport),
            security_ns: ns(self.phases.security),
            upgrade_ns: ns(self.phases.upgrade),
        }
    }

    /// Writes them into the sample of the exchange that opened the connection.
    pub fn note_phases(&self, sample: &mut Sample) {
        sample.client_port = Some(self.connection.client_port());
        sample.setup = Some(self.setup());
    }
}

/// Sends one message and receives its answer, on `stream`.
pub async fn exchange(stream: &mut Stream, message: &[u8], reply: &mut [u8]) -> Result<usize, TransportError> {
    stream.sender.send(message).await?;
    stream.receiver.receive(reply).await
}
