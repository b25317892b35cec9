//! Dropped packets, by cause.

use crate::DropCause;
use crosswind_path::{Cause, DirectionConfig};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Drops in one direction, by cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    by_path: Vec<(Cause, u64)>,
    by_devices: u64,
}

impl Dropped {
    /// Counts `packets` more.
    pub fn add(&mut self, cause: DropCause, packets: u64) {
        match cause {
            DropCause::Device => self.by_devices += packets,
            DropCause::Path(cause) => match self.by_path.iter_mut().find(|(known, _)| *known == cause) {
                Some((_, count)) => *count += packets,
                None => self.by_path.push((cause, packets)),
            },
        }
    }

    /// Adds the counts in `other`.
    pub fn add_all(&mut self, other: &Self) {
        other.by_path.iter().for_each(|(cause, packets)| self.add(DropCause::Path(*cause), *packets));
        self.by_devices += other.by_devices;
    }

    /// Packets dropped for `cause`.
    pub fn count(&self, cause: DropCause) -> u64 {
        match cause {
            DropCause::Device => self.by_devices,
            DropCause::Path(cause) => self.by_path.iter().find(|(known, _)| *known == cause).map_or(0, |(_, n)| *n),
        }
    }

    /// All causes together.
    pub fn total(&self) -> u64 {
        self.by_path.iter().map(|(_, count)| count).sum::<u64>() + self.by_devices
    }
}

/// Nothing dropped. Every element's causes are present, so a result always has the same keys.
impl Default for Dropped {
    fn default() -> Self {
        Self { by_path: DirectionConfig::drop_causes().into_iter().map(|cause| (cause, 0)).collect(), by_devices: 0 }
    }
}

/// As in a result: packets by cause.
impl Serialize for Dropped {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.by_path.len() + 1))?;
        for (cause, count) in &self.by_path {
            map.serialize_entry(cause.name(), count)?;
        }
        map.serialize_entry(DropCause::Device.name(), &self.by_devices)?;
        map.end()
    }
}
