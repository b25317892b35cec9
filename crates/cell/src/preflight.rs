//! Preflight warnings: problems known before a cell runs.

use crate::{Cell, CellError, ErrorKind};
use crosswind_host::{Family, MtuProbing};
use crosswind_path::Side;
use crosswind_transport::Carrier;
use crosswind_units::BitRate;
use crosswind_workload::{TrafficPattern, Warning, WorkloadConfig};

/// Header bytes: RFC 791, 8200, 9293 with timestamps, and 768.
const IPV4: u64 = 20;
const IPV6: u64 = 40;
const TCP: u64 = 32;
const UDP: u64 = 8;

impl Cell {
    /// Warnings independent of the run's events.
    pub fn preflight(&self) -> Vec<Warning> {
        let flows = self.flows.iter().filter(|flow| flow.count > 0).map(|flow| (Some(&flow.name), &flow.workload));
        let senders: Vec<_> = [(None, &self.workload)].into_iter().chain(flows).collect();
        let of_side = |side| senders.iter().filter_map(move |(flow, workload)| self.black_hole(side, *flow, workload));
        Side::BOTH.into_iter().flat_map(of_side).chain(self.background()).chain(self.flows_apart()).collect()
    }

    /// Flows unable to overlap: one has to stop before another may begin.
    pub fn flows_apart(&self) -> Option<Warning> {
        let flows = || self.flows.iter().filter(|flow| flow.count > 0);
        let last = flows().max_by_key(|flow| flow.start_ns)?;
        let first = flows().filter(|flow| flow.stop_ns.is_some()).min_by_key(|flow| flow.stop_ns)?;
        (first.stop_ns <= Some(last.start_ns)).then(|| Warning::flows_apart(&last.name, Some(&first.name)))
    }

    /// The error for a missed deadline, with the number of exchanges done, and the known reason.
    pub fn past_deadline(&self, done: u64) -> CellError {
        let (seconds, all) = (self.deadline_ns as f64 / 1e9, self.workload.exchanges());
        let message = format!("the cell was not done by its deadline of {seconds:.1} s (exchanges: {done} of {all})");
        let filled = self.background().find(|it| it.name == Warning::BACKGROUND_FILLS_LINK);
        match filled {
            Some(filled) => {
                let message = format!("{message}; {}, and hardly anything else gets through", filled.text);
                CellError::new(ErrorKind::Deadline, message)
                    .hint("less of it (background_rate), or a workload with a duration or a short timeout")
            }
            None => CellError::new(ErrorKind::Deadline, message)
                .hint("ask for less of the workload, or let an exchange that takes so long time out (timeout)"),
        }
    }

    /// Background traffic that alone fills a link, or that meets none.
    fn background(&self) -> impl Iterator<Item = Warning> {
        let hops = self.path.directions.hops.iter();
        let of_hops = hops.flat_map(|hop| Side::BOTH.map(|side| (side, hop.name.clone(), hop.side(side).effect())));
        of_hops.filter_map(|(side, hop, effect)| {
            let (rate_bps, link_bps) = (effect.background_bps, effect.rate.map(BitRate::as_bps));
            let fits = link_bps.is_some_and(|link_bps| rate_bps < link_bps as f64);
            (rate_bps > 0.0 && !fits).then(|| Warning::background(side.name(), &hop, rate_bps, link_bps))
        })
    }

    /// Packets too large for the path, without notice to their sender.
    fn black_hole(&self, side: Side, flow: Option<&String>, workload: &WorkloadConfig) -> Option<Warning> {
        let mtu_bytes = self.path.directions.black_hole(side).filter(|mtu| *mtu < self.path.mtu_bytes)?;
        let carrier = workload.connections().map_or(Carrier::Tcp, |needs| needs.transport.features().carrier);
        let header = match carrier {
            // QUIC searches for the path MTU itself, and needs no notice.
            Carrier::Quic => return None,
            Carrier::Tcp if !matches!(self.host.tcp_mtu_probing, None | Some(MtuProbing::Off)) => return None,
            Carrier::Tcp => TCP,
            Carrier::Udp => UDP,
        };
        let ip = if self.path.family == Family::Ipv6 { IPV6 } else { IPV4 };
        let is_too_large = largest_message(&workload.traffic(), side)? + header + ip > u64::from(mtu_bytes);
        is_too_large.then(|| Warning::black_hole(side.name(), mtu_bytes, carrier == Carrier::Udp, flow))
    }
}

/// The largest message in one direction, in bytes; none without messages.
fn largest_message(traffic: &TrafficPattern, side: Side) -> Option<u64> {
    let forward = side == Side::Forward;
    match *traffic {
        TrafficPattern::Exchanges { request_bytes, reply_bytes, .. } => {
            Some(if forward { request_bytes } else { reply_bytes })
        }
        TrafficPattern::Transfers { size_bytes, upload, .. } => {
            (upload == forward).then_some(size_bytes.unwrap_or(u64::from(u32::MAX)))
        }
        TrafficPattern::Streams { size_bytes, .. } => Some(size_bytes),
        TrafficPattern::Pages { html_bytes, objects_bytes, objects, request_bytes, .. } => {
            Some(if forward { request_bytes } else { html_bytes.max(objects_bytes / u64::from(objects.max(1))) })
        }
        TrafficPattern::Unknown {} => Some(u64::from(u32::MAX)),
        TrafficPattern::Handshakes { .. } => None,
    }
}
