//! Closed loop: the next message is sent after the answer to the previous one, so one is in flight on each connection.

use crate::Sample;
use crate::client::{Client, exchange};
use crate::exchange::{Exchange, Positions};
use crate::message;
use crosswind_transport::driver::Bound;
use crosswind_transport::{Connection, Purpose, Stream, TransportError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a connection, or a stream, serves one exchange or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reuse {
    /// One for all exchanges.
    #[default]
    Kept,
    /// A new one for each exchange.
    New,
}

/// A client's state between exchanges.
struct Kept {
    connection: Box<dyn Connection>,
    stream: Option<Stream>,
}

struct ClosedLoop<'a> {
    client: &'a Client<'a>,
    connection: Reuse,
    /// Whether a connection's messages share one stream.
    one_stream: bool,
    /// How many writes hand a message over.
    writes: u32,
    /// Whether it is the only client.
    alone: bool,
    bound: Bound,
    kept: Option<Kept>,
    /// Buffers: the message, its reply, and the expected reply.
    message: Vec<u8>,
    reply: Vec<u8>,
    expected: Vec<u8>,
}

/// Sends the messages with these `numbers` one after another.
pub async fn run(
    client: &Client<'_>,
    connection: Reuse,
    stream: Reuse,
    writes: u32,
    alone: bool,
    numbers: impl Iterator<Item = u64>,
) -> Vec<Exchange> {
    let mut closed = ClosedLoop {
        client,
        connection,
        one_stream: !client.stream_per_message() && stream == Reuse::Kept,
        writes,
        alone,
        bound: Bound::new(client.driver()),
        kept: None,
        message: client.messages().buffer(client.sizes.request),
        reply: vec![0; client.sizes.reply],
        expected: client.messages().buffer(client.sizes.reply),
    };
    let mut exchanges = Vec::new();
    for number in numbers.take_while(|_| !client.is_over()) {
        exchanges.push(closed.exchange(number).await);
    }
    if let Some(mut open) = closed.kept {
        client.close(open.connection.as_mut()).await;
    }
    exchanges
}

impl ClosedLoop<'_> {
    async fn exchange(&mut self, number: u64) -> Exchange {
        let (client, clock) = (self.client, self.client.context.clock());
        let mut sample = Sample::new(number, client.number);
        let opened = match self.kept.take() {
            Some(open) => Ok(open),
            None => self.open(&mut sample).await,
        };
        let mut open = match opened {
            Ok(open) => open,
            Err(error) => {
                client.context.progress.exchange_done(None);
                return Exchange::new(sample, Err(error));
            }
        };
        if self.connection == Reuse::Kept && self.alone {
            client.context.setup_done();
        }
        self.write_message(number);
        let before = clock.now();
        sample.sent = Some(before);
        sample.sent_bytes = self.message.len() as u64;
        let result = self.send_and_receive(&mut open).await;
        let after = clock.now();
        let client_port = open.connection.client_port();
        let is_expected = |length: usize| self.reply[..length] == self.expected[..];
        let exchange = Exchange::replied(sample, &self.message, client_port, after, result, is_expected);
        let ok = exchange.error.is_none();
        client.context.progress.exchange_done(ok.then(|| (after - before).as_nanos()));
        self.keep_or_end(open, ok).await;
        exchange
    }

    fn write_message(&mut self, number: u64) {
        self.client.messages().write(&mut self.message, number);
        let common = self.message.len().min(self.expected.len());
        self.expected[..common].copy_from_slice(&self.message[..common]);
    }

    async fn open(&self, sample: &mut Sample) -> Result<Kept, TransportError> {
        let client = self.client;
        let opened = client.open().await?;
        if client.connections_take_packets() {
            opened.note_phases(sample);
        }
        let connection = opened.connection;
        let stream = if self.one_stream {
            Some(client.within("cannot open a stream", connection.open(Purpose::Messages)).await?)
        } else {
            None
        };
        Ok(Kept { connection, stream })
    }

    async fn keep_or_end(&mut self, mut open: Kept, ok: bool) {
        if self.connection == Reuse::Kept && (ok || self.client.features().datagram) {
            self.kept = Some(open);
        } else if ok {
            self.client.close(open.connection.as_mut()).await;
        } else {
            // A late reply must not be taken for the next one.
            open.connection.abort();
        }
    }

    /// Sends the message and receives its reply; says how long the reply is, and where both end.
    async fn send_and_receive(&mut self, open: &mut Kept) -> Result<(usize, Positions), TransportError> {
        let (client, message, reply) = (self.client, self.message.as_slice(), self.reply.as_mut_slice());
        let writes = self.writes as usize;
        let exchanging = async {
            if let Some(stream) = &mut open.stream {
                let length = if client.features().datagram {
                    exchange_datagrams(client, stream, message, reply).await?
                } else {
                    send(stream, message, writes).await?;
                    stream.receiver.receive(reply).await?
                };
                return Ok((length, stream.positions()));
            }
            let mut stream = open.connection.open(Purpose::Messages).await?;
            let length = exchange(&mut stream, message, reply).await?;
            let positions = stream.positions();
            stream.sender.finish().await?;
            Ok((length, positions))
        };
        client.until_over("cannot exchange", self.bound.within(client.timeout(), "cannot exchange", exchanging)).await
    }
}

/// Sends a message in so many writes of the same size; the last one takes what is left.
async fn send(stream: &mut Stream, message: &[u8], writes: usize) -> Result<(), TransportError> {
    let part = message.len() / writes;
    stream.sender.send(&message[..part]).await?;
    for number in 1..writes {
        let end = if number + 1 == writes { message.len() } else { (number + 1) * part };
        stream.sender.send_some(&message[number * part..end]).await?;
    }
    Ok(())
}

/// Sends a datagram and receives its answer. Late answers to earlier datagrams are passed over; everything has to
/// happen within one timeout.
async fn exchange_datagrams(
    client: &Client<'_>,
    stream: &mut Stream,
    message: &[u8],
    reply: &mut [u8],
) -> Result<usize, TransportError> {
    let common = message.len().min(reply.len()).min(size_of::<u64>());
    let is_own = |reply: &[u8]| message::read(&reply[..common.min(reply.len())]) == message::read(&message[..common]);
    let length = exchange(stream, message, reply).await?;
    if is_own(&reply[..length]) {
        return Ok(length);
    }
    let clock = client.context.clock();
    let deadline = clock.now() + crosswind_units::Duration::from_nanos(client.timeout().as_nanos() as u64);
    let result = loop {
        let left = deadline.saturating_since(clock.now());
        if let Err(e) = stream.receiver.set_timeout(left.into()) {
            break Err(e);
        }
        match stream.receiver.receive(reply).await {
            Ok(length) if !is_own(&reply[..length]) => {}
            result => break result,
        }
    };
    stream.receiver.set_timeout(client.timeout())?;
    result
}
