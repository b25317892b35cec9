//! Where the walk back through one message on a QUIC connection begins.

use crate::bytes::{Awaited, ByteStream};
use crate::critical_path::{CriticalPath, Interval, Place};
use crate::links::Links;
use crate::quic_walk::{QuicConversation, QuicWalk};
use crate::walk::{Step, Walk};
use crate::{DelayCause, MessageTransit};
use crosswind_ledger::{Position, QuicFrame};

impl<'a> QuicConversation<'a> {
    /// Attributes a message's transit.
    pub fn transit(&self, message: MessageTransit, links: &Links<'a>) -> Vec<Interval> {
        let path = CriticalPath::new(message.written, message.received, message.side);
        let mut walk = QuicWalk::new(self, links, path, Some(message));
        let last = match message.position {
            Some(Position::Stream { stream, start, end }) => walk.stream(message, stream, start, end),
            Some(Position::Datagram(number)) => walk.datagram(message, number),
            None | Some(Position::Bytes { .. }) => walk.unnumbered(message),
        };
        walk.go(last).pieces
    }
}

impl QuicWalk<'_, '_> {
    /// A message on a stream: from `start` to `end`, or all of it.
    fn stream(&mut self, message: MessageTransit, number: u64, start: Option<u64>, end: Option<u64>) -> Option<Step> {
        let (sender, place) = (self.sender(message.side), Place::receiver(message.side));
        let stream = sender.streams.get(&number)?;
        if message.timed {
            return self.awaited(message, number, stream);
        }
        let (start, end) = match (start, end) {
            (start, None) => (start.unwrap_or(0), stream.sent()),
            (start, Some(end)) => (start.unwrap_or_else(|| end.saturating_sub(message.bytes)), end),
        };
        let done = stream.completion_of(end).filter(|done| done.at <= message.received)?;
        if done.at < message.written {
            return None;
        }
        self.state.path.name(done.at, DelayCause::receiver(message.side), place, None, 0);
        let (mut send, mut byte) = (done.send, done.missing);
        if byte < start {
            let (at, own, last) = stream.last_of(&(start..end), |it| sender.sends[it].arrived)?;
            self.state.path.name(at, DelayCause::HeadOfLine, place, Some(sender.sends[send].packet), 0);
            (send, byte) = (own, last);
        }
        self.came(message, send, Some((stream, byte)))
    }

    /// A message measured by data received in time: back from the byte its receiver then waited for.
    fn awaited(&mut self, message: MessageTransit, number: u64, stream: &ByteStream) -> Option<Step> {
        let (received, place) = (message.received, Place::sender(message.side));
        let (sender, hosts) = (self.sender(message.side), self.state.hosts);
        match stream.awaited(received, |send| sender.sends[send].packet.entered < received) {
            Awaited::Came { byte, send } => self.came(message, send, Some((stream, byte))),
            Awaited::Lost { byte, first, last } => {
                let packet = sender.sends[last].packet;
                self.state.path.name(packet.entered, self.threshold(message, last), place, Some(packet), 0);
                self.direction(message.side).recovery(stream, last, byte, &mut self.state.path);
                Some(Step::sent(message.side, first))
            }
            Awaited::Unsent(Some(next)) => Some(Step::sent(message.side, next)),
            Awaited::Unsent(None) => {
                let done = stream.completion(received).filter(|done| done.at >= message.written)?;
                let all = sender.sends.last().map_or(0, |it| it.new);
                let part = match () {
                    () if stream.sent() >= sender.limit(Some(number), received, hosts.quic_stream_window) => {
                        DelayCause::StreamWindow
                    }
                    () if all >= sender.limit(None, received, hosts.quic_connection_window) => {
                        DelayCause::ConnectionWindow
                    }
                    // The congestion window and pacing look alike.
                    () if sender.is_in_flight(sender.sends.len(), received) => DelayCause::Unknown,
                    () => DelayCause::sender(message.side),
                };
                self.state.path.name(done.at, part, place, None, 0);
                self.came(message, done.send, Some((stream, done.missing)))
            }
        }
    }

    /// How a datagram's loss was going to be detected, by its arrived successors.
    fn threshold(&self, message: MessageTransit, lost: usize) -> DelayCause {
        let sender = self.sender(message.side);
        let behind = sender.between(lost + 1, message.received).filter(|&it| sender.sends[it].arrived.is_some());
        match sender.number(lost).zip(behind.filter_map(|it| sender.number(it)).max()) {
            Some((lost, last)) if last >= lost + u64::from(self.state.hosts.quic_packet_threshold) => {
                DelayCause::PacketThreshold
            }
            Some(_) => DelayCause::TimeThreshold,
            None => DelayCause::Unknown,
        }
    }

    fn datagram(&mut self, message: MessageTransit, number: u64) -> Option<Step> {
        let sender = self.sender(message.side);
        let send = *sender.datagrams.get(usize::try_from(number).ok()?)? as usize;
        let sent = &sender.sends[send];
        let at = sent.arrived.filter(|&at| at <= message.received && sent.packet.entered >= message.written)?;
        self.state.path.name(at, DelayCause::receiver(message.side), Place::receiver(message.side), None, 0);
        self.came(message, send, None)
    }

    /// A message with an unknown stream: the last arrival, if unambiguous.
    fn unnumbered(&mut self, message: MessageTransit) -> Option<Step> {
        let MessageTransit { side, written, received, bytes, alone, .. } = message;
        let sender = self.sender(side);
        let until = sender.arrivals.partition_point(|it| it.0 <= received);
        let since = sender.arrivals[..until].iter().rev().take_while(|it| it.0 >= written);
        let mut own = since.map(|&(at, send)| (at, send as usize)).filter(|&(_, send)| {
            let is_whole = |frame| matches!(frame, QuicFrame::Datagram { length } if u64::from(length) >= bytes);
            sender.sends[send].packet.entered >= written
                && (sender.frames(send).any(is_whole) || alone && sender.pieces(send).next().is_some())
        });
        let ((mut at, mut send), mut others) = (own.next()?, own);
        let is_prompt = |at| self.state.is_prompt(at, received);
        if !alone && (!is_prompt(at) || others.any(|(at, _)| is_prompt(at))) {
            return None;
        }
        let stream = sender.pieces(send).next().and_then(|(number, _)| sender.streams.get(&number));
        let done = stream.and_then(|stream| Some((stream, stream.completion(received)?)));
        let mut byte = None;
        if let Some((stream, done)) = done.filter(|(_, done)| done.at >= written) {
            (at, send, byte) = (done.at, done.send, Some((stream, done.missing)));
        }
        self.state.path.name(at, DelayCause::receiver(side), Place::receiver(side), None, 0);
        self.came(message, send, byte)
    }

    /// Back from the arrival of `send`, which brought a stream's byte, to its sending.
    fn came(&mut self, message: MessageTransit, send: usize, byte: Option<(&ByteStream, u64)>) -> Option<Step> {
        let sender = self.sender(message.side);
        let mut sent = sender.send_of(self.state.follow(sender.sends[send].packet, None))?;
        if let Some((stream, byte)) = byte.filter(|_| sent == send) {
            sent = self.direction(message.side).recovery(stream, sent, byte, &mut self.state.path);
        }
        Some(Step::sent(message.side, sent))
    }
}
