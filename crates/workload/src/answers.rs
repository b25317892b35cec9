//! The server's side of messages that are answered.

use crate::message::{self, Messages, Sizes};
use crate::server::{Seen, Serve, Work};
use crosswind_host::Clock;
use crosswind_transport::Outcome;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What every stream of a server needs.
pub struct Answers {
    clock: Clock,
    sizes: Sizes,
    messages: Messages,
    /// Kept from one stream to the next: where a stream is one message, to make them would be part of its time.
    rooms: Mutex<Vec<Room>>,
}

struct Room {
    request: Vec<u8>,
    /// Empty where the answer is part of the request.
    reply: Vec<u8>,
}

impl Answers {
    pub fn new(clock: Clock, sizes: Sizes, messages: Messages) -> Self {
        Self { clock, sizes, messages, rooms: Mutex::default() }
    }

    /// Answers every message of a stream: with itself, or as much of it as the answer has room for.
    pub fn work(self: Arc<Self>, serve: Serve<'_>) -> Work<'_, ()> {
        Box::pin(async move {
            let kept = self.rooms.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut room = kept.unwrap_or_else(|| self.room());
            self.answer(&mut room, serve).await;
            self.rooms.lock().unwrap_or_else(PoisonError::into_inner).push(room);
        })
    }

    fn room(&self) -> Room {
        let Sizes { request, reply } = self.sizes;
        let longer = if reply > request { self.messages.buffer(reply) } else { Vec::new() };
        Room { request: vec![0; request], reply: longer }
    }

    async fn answer(&self, room: &mut Room, mut serve: Serve<'_>) {
        loop {
            let length = match serve.stream.receiver.receive(&mut room.request).await {
                Ok(length) => length,
                Err(e) if e.outcome == Outcome::Timeout && !serve.stopping.load(Ordering::Acquire) => continue,
                Err(_) => break,
            };
            let received = self.clock.now();
            let request = &room.request[..length];
            let sent = self.clock.now();
            // A lost answer is the client's to see; a connection that is gone ends at the next receive.
            let _ = if room.reply.is_empty() {
                serve.stream.sender.send(&request[..length.min(self.sizes.reply)]).await
            } else {
                room.reply[..length].copy_from_slice(request);
                serve.stream.sender.send(&room.reply).await
            };
            let (client_port, tag, bytes) = (serve.port(), message::read(request), length as u64);
            serve.saw(Seen { client_port, tag, first: received, received, sent, bytes });
            if serve.one_message {
                return;
            }
        }
        let _ = serve.stream.sender.finish().await;
    }
}
