//! What a path is asked to be, as it stands in a cell (units in the key), checked.

use crosswind_units::{BitRate, Bytes, Duration, Probability};
use serde::{Deserialize, Serialize};

/// Longest delay that makes sense: 10 minutes one way. Beyond it, a mistake in units is likelier.
const MAX_DELAY_NS: u64 = 600_000_000_000;
/// 1 Tbit/s: far above what one machine forwards.
const MAX_RATE_BPS: u64 = 1_000_000_000_000;

/// Both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathConfig {
    /// Client to server.
    pub forward: DirectionConfig,
    /// Server to client.
    pub reverse: DirectionConfig,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct DirectionConfig {
    /// One-way propagation delay.
    pub delay: Duration,
    /// Probability that a packet is lost.
    pub loss: Probability,
    /// Rate of the link; `None` is unlimited.
    pub rate: Option<BitRate>,
    /// Room before the link.
    pub queue: QueueLimit,
    /// What a packet occupies on the link and in a byte queue.
    pub counting: Counting,
}

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In bytes, counted as the link counts them.
    Bytes(u64),
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::Packets(1000)
    }
}

/// What counts as a packet's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// The IP packet.
    #[default]
    Ip,
    /// The IP packet and what Ethernet adds around it.
    Ethernet,
}

impl Counting {
    /// Bytes that an IP packet of `size` occupies.
    pub fn occupied(self, size: Bytes) -> Bytes {
        match self {
            Self::Ip => size,
            // IEEE 802.3: header 14, FCS 4, preamble and SFD 8, inter-packet gap 12; payloads below 46 are padded.
            Self::Ethernet => Bytes(size.0.max(46) + 38),
        }
    }
}

/// A value that no path can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PathConfigError {
    /// Not a probability.
    #[error("loss {0} is not a fraction between 0 and 1")]
    Loss(f64),
    /// A link of no rate, or an absurd one.
    #[error("rate_bps {0} is not between 1 and 1000000000000; leave it out for an unlimited link")]
    Rate(u64),
    /// Longer than ten minutes.
    #[error("delay_ns {0} is above 600000000000 (10 minutes)")]
    Delay(u64),
    /// A queue of no packets and no bytes.
    #[error("a queue of 0 would drop every packet that has to wait; give at least 1 packet or 1 byte")]
    Queue,
    /// A queue before an unlimited link never fills.
    #[error("queue is set but rate_bps is not: an unlimited link has no queue")]
    QueueWithoutRate,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Raw {
    delay_ns: u64,
    loss: f64,
    rate_bps: Option<u64>,
    queue: Option<QueueLimit>,
    count: Counting,
}

impl Default for Raw {
    fn default() -> Self {
        Self { delay_ns: 0, loss: 0.0, rate_bps: None, queue: None, count: Counting::Ip }
    }
}

impl TryFrom<Raw> for DirectionConfig {
    type Error = PathConfigError;

    fn try_from(raw: Raw) -> Result<Self, PathConfigError> {
        if raw.delay_ns > MAX_DELAY_NS {
            return Err(PathConfigError::Delay(raw.delay_ns));
        }
        let rate = match raw.rate_bps {
            None => None,
            Some(bps) if bps > MAX_RATE_BPS => return Err(PathConfigError::Rate(bps)),
            Some(bps) => Some(BitRate::new(bps).ok_or(PathConfigError::Rate(bps))?),
        };
        match raw.queue {
            Some(QueueLimit::Packets(0) | QueueLimit::Bytes(0)) => return Err(PathConfigError::Queue),
            Some(_) if rate.is_none() => return Err(PathConfigError::QueueWithoutRate),
            _ => {}
        }
        Ok(Self {
            delay: Duration::from_nanos(raw.delay_ns),
            loss: Probability::new(raw.loss).map_err(|e| PathConfigError::Loss(e.0))?,
            rate,
            queue: raw.queue.unwrap_or_default(),
            counting: raw.count,
        })
    }
}

impl From<DirectionConfig> for Raw {
    fn from(config: DirectionConfig) -> Self {
        Self {
            delay_ns: config.delay.as_nanos(),
            loss: config.loss.as_fraction(),
            rate_bps: config.rate.map(BitRate::as_bps),
            queue: config.rate.map(|_| config.queue),
            count: config.counting,
        }
    }
}
