//! What a client's lane works with: opening connections, and bounds on what it waits for.

use crate::Sample;
use crate::context::Context;
use crate::message::{Messages, Sizes};
use crosswind_transport::{
    Connection, Driver, Features, Phases, Purpose, Resumption, SocketReadback, Stream, Streams, TransportError,
    TransportRef,
};
use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

/// A sample, and where its connection came from: to find what the server saw.
pub struct Sent {
    pub sample: Sample,
    pub client_port: u16,
    pub tag: u64,
}

/// A connection that was just set up.
pub struct Opened {
    pub connection: Box<dyn Connection>,
    /// How long it took.
    pub took_ns: u64,
    /// And its steps.
    pub phases: Phases,
}

/// What one lane works with.
pub struct Lane<'a> {
    pub context: &'a Context<'a>,
    pub transport: TransportRef,
    pub timeout: Duration,
    /// Its number among those side by side.
    pub number: u32,
    pub messages: Messages,
    /// What the server expects and answers.
    pub sizes: Sizes,
    pub readback: &'a OnceLock<SocketReadback>,
}

impl Lane<'_> {
    pub fn features(&self) -> Features {
        self.transport.features()
    }

    pub fn driver(&self) -> Driver {
        self.features().driver
    }

    /// `call`, bounded by the lane's timeout.
    pub async fn within<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        self.driver().within(self.timeout, what, call).await
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
        self.context.resumptions.count(self.context.settings.resumption, &phases);
        Ok(Opened { connection, took_ns, phases })
    }

    /// Where sessions are to be resumed: one connection that no sample tells of, so that the first counted one has a session.
    pub async fn prime(&self) {
        if self.context.settings.resumption == Resumption::None {
            return;
        }
        // What keeps it from connecting keeps the others too, and shows there.
        if let Ok(mut opened) = self.connect().await {
            let _ = self.settle(opened.as_ref()).await;
            self.close(opened.as_mut()).await;
        }
    }

    /// Bounded by the transport itself.
    async fn connect(&self) -> Result<Box<dyn Connection>, TransportError> {
        self.transport.connect(self.context.server_address(), &self.context.settings, self.timeout).await
    }

    /// One exchange that no sample tells of: by its end the server's session ticket has come.
    pub async fn settle(&self, connection: &dyn Connection) -> Result<(), TransportError> {
        self.within("cannot exchange", async {
            let mut stream = connection.open(Purpose::Messages).await?;
            exchange(&mut stream, &self.messages.buffer(self.sizes.request), &mut vec![0; self.sizes.reply]).await?;
            stream.sender.finish().await
        })
        .await
    }

    /// Ends a connection in an orderly way, for which nobody waits long.
    pub async fn close(&self, connection: &mut dyn Connection) {
        // One that is already gone is closed as well.
        let _ = self.driver().within(Duration::from_secs(1), "cannot close", connection.close()).await;
    }

    /// Whether each message needs a stream of its own.
    pub fn stream_per_message(&self) -> bool {
        self.features().streams == Streams::PerMessage
    }
}

/// Sends one message and receives its answer, on `stream`.
pub async fn exchange(stream: &mut Stream, message: &[u8], reply: &mut [u8]) -> Result<usize, TransportError> {
    stream.sender.send(message).await?;
    stream.receiver.receive(reply).await
}

/// Writes how a connection was set up into the sample of the exchange that opened it.
pub fn note_phases(sample: &mut Sample, took_ns: u64, phases: &Phases) {
    let ns = |phase: Option<Duration>| phase.map(|phase| phase.as_nanos() as u64);
    sample.connect_ns = Some(took_ns);
    sample.transport_ns = ns(phases.transport);
    sample.security_ns = ns(phases.security);
    sample.upgrade_ns = ns(phases.upgrade);
}
