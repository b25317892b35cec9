//! Where the walk back through one message on a TCP connection begins.

use crate::bytes::Awaited;
use crate::critical_path::{CriticalPath, Interval, Place};
use crate::handshake::Handshake;
use crate::links::Links;
use crate::tcp::Connection;
use crate::tcp_walk::TcpWalk;
use crate::walk::{Step, Walk};
use crate::{DelayCause, MessageTransit};
use crosswind_ledger::Position;
use crosswind_units::Duration;

impl<'a> Connection<'a> {
    /// Attributes a message's transit.
    pub fn transit(&self, message: MessageTransit, links: &Links<'a>) -> Vec<Interval> {
        let path = CriticalPath::new(message.written, message.received, message.side);
        let mut walk = TcpWalk::new(self, links, path, Some(message));
        let is_cut = message.timed && !self.sender(message.side).sends.is_empty();
        let last = if is_cut { walk.awaited(message) } else { walk.completed(message) };
        walk.go(last).pieces
    }

    /// The limit on an always-busy sender at the end of a message.
    fn held_at_end(&self, message: MessageTransit) -> DelayCause {
        let sender = self.sender(message.side);
        let (sent, last) = (sender.bytes.sent(), sender.acks_until(message.received).last());
        let (acknowledged, edge) = last.map_or((0, u64::MAX), |ack| (ack.acknowledged, ack.edge));
        let is_in_flight = acknowledged < sent;
        if sent + sender.largest_segment > edge && sender.begun {
            return if is_in_flight { DelayCause::ReceiveWindow } else { DelayCause::ZeroWindow };
        }
        match () {
            () if !is_in_flight => DelayCause::sender(message.side),
            // Other reasons not to send look alike.
            () if !sender.begun || self.hosts.pacing || self.hosts.send_buffer.is_some() => DelayCause::Unknown,
            () => DelayCause::CongestionWindow,
        }
    }
}

impl TcpWalk<'_, '_> {
    /// Back from a message's completion.
    fn completed(&mut self, message: MessageTransit) -> Option<Step> {
        let connection = self.connection;
        let sender = connection.sender(message.side);
        let has_come = |end| sender.bytes.completion_of(end).is_some_and(|done| done.at <= message.received);
        let own = match message.position {
            // Time tells if another end counted, as a proxy's, or if TLS counted its handshake behind early data.
            Some(Position::Bytes { start, end })
                if end > start && end <= sender.bytes.sent() && (!message.alone || has_come(end)) =>
            {
                Some(std::iter::once(start..end).collect())
            }
            Some(Position::Stream { stream, .. }) => connection.http_bytes(message.side, stream, message.received),
            _ => None,
        };
        let done = match &own {
            Some(own) => {
                let done = own.last().and_then(|own| sender.bytes.completion_of(own.end));
                done.filter(|done| done.at <= message.received)
            }
            None => sender.bytes.completion(message.received),
        };
        // A host sending first waits for the end of the handshake alone.
        let is_own = |it: &Handshake<'_>| {
            it.confirmation().is_some_and(|it| it.0 >= message.written) && it.opener == message.side
        };
        if sender.sends.is_empty()
            && let Some(handshake) = connection.handshake.as_ref().filter(|&it| is_own(it))
        {
            handshake.confirmed(self.state.links, &mut self.state.path);
        }
        let done = done.filter(|it| it.at >= message.written)?;
        let (mut send, mut byte) = (done.send, done.missing);
        let place = Place::receiver(message.side);
        self.state.path.name(done.at, DelayCause::receiver(message.side), place, None, 0);
        // With unknown positions, bytes sent before the message was handed over are another's; but if there is no
        // other, the message waits for the packet sent right before, as the end of a handshake.
        let nearest = if message.alone { connection.hosts.promptness } else { Duration::ZERO };
        let is_before = |send: usize| message.written.saturating_since(sender.sends[send].packet.entered) > nearest;
        let is_others = match &own {
            Some(own) => !own.iter().any(|own| own.contains(&byte)),
            None => sender.bytes.first_with(byte).is_some_and(is_before),
        };
        if is_others {
            let found = |start| std::iter::once(start..start + message.bytes.max(1)).collect();
            let own = own.or_else(|| sender.bytes.first_byte(is_before).map(found))?;
            let arrived = |send: usize| sender.sends[send].arrived();
            let lasts = own.iter().filter_map(|own| sender.bytes.last_of(own, arrived));
            let (at, last, missing) = lasts.max_by_key(|it| it.0)?;
            let packet = sender.sends[send].packet;
            self.state.path.name(at, DelayCause::HeadOfLine, place, Some(packet), 0);
            (send, byte) = (last, missing);
        }
        Some(self.came(message.side, send, byte))
    }

    /// A message measured by data received in time: back from the byte its receiver then waited for.
    fn awaited(&mut self, message: MessageTransit) -> Option<Step> {
        let (connection, side, received) = (self.connection, message.side, message.received);
        let (sender, place, path) = (connection.sender(side), Place::sender(side), &mut self.state.path);
        let was_sent = |send: usize| sender.sends[send].packet.entered < received;
        match sender.bytes.awaited(received, was_sent) {
            Awaited::Came { byte, send } => Some(self.came(side, send, byte)),
            Awaited::Lost { byte, first, last } => {
                // Acknowledgements for later segments were going to tell.
                let mut behind = (last + 1..sender.sends.len()).take_while(|&it| was_sent(it));
                let is_told = behind.any(|it| sender.sends[it].arrived().is_some());
                let (packet, part) =
                    (sender.sends[last].packet, if is_told { DelayCause::FastRecovery } else { DelayCause::Unknown });
                path.name(packet.entered, part, place, Some(packet), 0);
                connection.recovery(sender, last, byte, path);
                Some(Step::sent(side, first))
            }
            Awaited::Unsent(Some(next)) => Some(Step::sent(side, next)),
            Awaited::Unsent(None) => {
                let done = sender.bytes.completion(received).filter(|done| done.at >= message.written)?;
                let held = connection.held_at_end(message);
                let lost = sender.lost_opening(sender.bytes.sent() + 1, done.at, received);
                if let Some(lost) = lost.filter(|_| held == DelayCause::ZeroWindow) {
                    path.name(lost.entered, DelayCause::PersistTimer, place, Some(lost), 0);
                }
                path.name(done.at, held, place, None, 0);
                Some(self.came(side, done.send, done.missing))
            }
        }
    }
}
