//! Waits for HTTP/2's windows on a TCP connection (RFC 9113, section 5.2), as its frames tell.

use crate::DelayCause;
use crate::critical_path::{CriticalPath, Place};
use crate::http::Opened;
use crate::links::Links;
use crate::tcp::Connection;
use crosswind_path::Side;
use crosswind_units::Duration;

impl<'a> Connection<'a> {
    /// The window before a program's segment: its update came right before, or ended most of the time since the last
    /// segment.
    pub fn held_by_http2(&self, side: Side, send: usize) -> Option<(DelayCause, Opened)> {
        let (http, sender) = (self.http[side as usize].as_ref()?, self.sender(side));
        let (segment, before) = (&sender.sends[send], send.checked_sub(1).map(|it| &sender.sends[it]));
        let at = segment.packet.entered;
        let waited = before.map_or(Duration::ZERO, |it| at.saturating_since(it.packet.entered));
        let within = self.hosts.promptness.max(Duration::from_nanos(waited.as_nanos() / 2));
        let sent = |byte: u64| sender.bytes.first_with(byte).map(|send| sender.sends[send].packet.entered);
        http.held_segment(segment.start..segment.end, at, within, sent)
    }

    /// Goes back through a window's update, for which the segment `send` waited, to the segment it answers, and returns
    /// that.
    pub fn updated(
        &self,
        side: Side,
        send: usize,
        opened: &Opened,
        why: DelayCause,
        links: &Links<'a>,
        path: &mut CriticalPath,
    ) -> Option<usize> {
        let (sender, other) = (self.sender(side), self.sender(side.opposite()));
        path.name(opened.at, DelayCause::sender(side), Place::sender(side), None, 0);
        let begun_with = links.follow(other.sends[opened.send].packet, Some(why), path);
        let mut sent = other.send_of(begun_with)?;
        if sent == opened.send {
            sent = self.recovery(other, sent, opened.missing, path);
        }
        let packet = other.sends[sent].packet;
        let (at, answered) = sender.arrival_before(send, packet.entered)?;
        // Its program had not read yet.
        let is_prompt = packet.entered.saturating_since(at) <= self.hosts.promptness;
        path.name(at, if is_prompt { DelayCause::receiver(side) } else { why }, Place::receiver(side), Some(packet), 0);
        (!path.is_done()).then_some(answered)
    }
}
