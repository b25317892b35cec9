//! The server's side of answered messages.

use crate::message::{self, Messages, Sizes};
use crate::server::{ServeStream, ServerStream};
use crate::server_observation::ServerObservation;
use crosswind_host::Clock;
use crosswind_transport::Outcome;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// Answers every message with its own beginning, at the answer's length.
pub struct Answers {
    clock: Clock,
    sizes: Sizes,
    messages: Messages,
    /// Kept from one stream to the next: where a stream is one message, making them would be part of its time.
    free: Mutex<Vec<Buffers>>,
}

struct Buffers {
    request: Vec<u8>,
    /// Empty if the answer is part of the request.
    reply: Vec<u8>,
}

impl Answers {
    pub const fn new(clock: Clock, sizes: Sizes, messages: Messages) -> Self {
        Self { clock, sizes, messages, free: Mutex::new(Vec::new()) }
    }

    fn buffers(&self) -> Buffers {
        let Sizes { request, reply } = self.sizes;
        let longer = if reply > request { self.messages.buffer(reply) } else { Vec::new() };
        Buffers { request: vec![0; request], reply: longer }
    }

    async fn answer(&self, buffers: &mut Buffers, mut served: ServerStream<'_>) {
        loop {
            let length = match served.stream.receiver.receive(&mut buffers.request).await {
                Ok(length) => length,
                Err(e) if e.outcome == Outcome::Timeout && !served.stopping.load(Ordering::Acquire) => continue,
                Err(_) => break,
            };
            let received = self.clock.now();
            let request = &buffers.request[..length];
            let sent = self.clock.now();
            // A lost answer is the client's to see; a dead connection ends at the next receive.
            let _ = if buffers.reply.is_empty() {
                served.stream.sender.send(&request[..length.min(self.sizes.reply)]).await
            } else {
                buffers.reply[..length].copy_from_slice(request);
                served.stream.sender.send(&buffers.reply).await
            };
            let (client_port, tag, bytes) = (served.sender_port(), message::read(request), length as u64);
            let position = served.stream.sender.position();
            served.note(ServerObservation { client_port, tag, first: received, received, sent, bytes, position });
            if served.one_message {
                return;
            }
        }
        let _ = served.stream.sender.finish().await;
    }
}

impl ServeStream for Answers {
    async fn serve(&self, stream: ServerStream<'_>) {
        let kept = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffers = kept.unwrap_or_else(|| self.buffers());
        self.answer(&mut buffers, stream).await;
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(buffers);
    }
}
