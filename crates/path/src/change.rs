//! A path's changes over time: start, hop and settings.

use crate::direction::Side;
use crate::registry::DirectionConfig;
use crate::table::{self, Row};
use crate::{Course, Period};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use crosswind_settings::SettingError;
use crosswind_units::{Duration, Instant};

use crate::derive::{Deserialize, JsonSchema, Serialize};
use serde_json::{Map, Value};

/// New settings for a hop, temporary or lasting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// Times and hop.
    #[serde(flatten)]
    pub keys: ChangeKeys,
    /// New settings from client to server.
    pub forward: Map<String, Value>,
    /// New settings from server to client.
    pub reverse: Map<String, Value>,
    /// Trace rows.
    #[serde(skip)]
    pub rows: Vec<Row>,
}

/// The longest time in a change: 1 day.
pub const MAX_TIME_NS: u64 = 86_400_000_000_000;

/// The shortest interval between repetitions: 1 ms.
const MIN_INTERVAL_NS: u64 = 1_000_000;

/// A change of the path over time: while it holds, keys of a hop have other values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangeKeys {
    /// What it is called.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("varies" = false))]
    pub name: String,
    /// When it begins, counted from the first packet that enters the path.
    #[serde(rename = "start_ns")]
    #[schemars(with = "u64", range(max = MAX_TIME_NS))]
    pub start: Duration,
    /// How much later than `start` it may begin, at random: every repetition draws a time of its own.
    #[serde(rename = "spread_ns")]
    #[schemars(with = "u64", range(max = MAX_TIME_NS))]
    pub spread: Duration,
    /// How long it holds; without it, for good.
    #[serde(rename = "for_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_TIME_NS))]
    pub lasting: Option<Duration>,
    /// How long after its start it begins again, and again; without it, it happens once.
    #[serde(rename = "every_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_INTERVAL_NS, max = MAX_TIME_NS), extend("only_with" = {"key": "for_ns", "value": null}))]
    pub every: Option<Duration>,
    /// The hop that changes, by its name; of a path with several hops.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("varies" = false))]
    pub hop: Option<String>,
    /// A table of values over time: lines of a time in seconds and a value for each column, as rates in Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("kind" = "file"))]
    pub trace: Option<String>,
    /// The keys that the columns of the trace are, as rate and delay; without them its first line says so, or it is the rate alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("varies" = false, "only_with" = {"key": "trace", "value": null}))]
    pub columns: Option<Vec<String>>,
    /// Which directions the trace is of: both, forward or reverse.
    #[schemars(extend("only_with" = {"key": "trace", "value": null}))]
    pub of: Directions,
    /// Whether the last line of the trace holds for good; otherwise the trace begins again.
    #[schemars(extend("only_with" = {"key": "trace", "value": null}))]
    pub once: bool,
}

/// Which directions are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// Both.
    #[default]
    Both,
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
}

impl Change {
    /// The new settings in one direction.
    pub fn side(&self, side: Side) -> &Map<String, Value> {
        side.pick(&self.forward, &self.reverse)
    }

    pub(crate) fn is_of(&self, hop: &str) -> bool {
        self.keys.hop.as_ref().is_none_or(|name| name == hop)
    }

    pub(crate) fn has_trace(&self, side: Side) -> bool {
        let of_side = match self.keys.of {
            Directions::Both => true,
            Directions::Forward => side == Side::Forward,
            Directions::Reverse => side == Side::Reverse,
        };
        of_side && !self.rows.is_empty()
    }

    /// All keys set in one direction, at any time.
    pub(crate) fn names(&self, side: Side) -> impl Iterator<Item = &String> {
        let of_trace = self.rows.first().filter(|_| self.has_trace(side)).map(|row| row.values.keys());
        self.side(side).keys().chain(of_trace.into_iter().flatten())
    }

    /// The new settings in one direction during a row of its trace.
    pub(crate) fn with_row(&self, side: Side, row: &Row) -> Map<String, Value> {
        let mut values = self.side(side).clone();
        values.extend(row.values.clone());
        values
    }

    /// The new settings in one direction, row by row with times; `word` decides the delay after `start`.
    pub(crate) fn course(&self, side: Side, word: u64) -> (Course, Vec<Map<String, Value>>) {
        let period = self.period(word);
        if !self.has_trace(side) {
            return (Course { period, ..Course::default() }, vec![self.side(side).clone()]);
        }
        let rows = self.rows.iter().map(|row| self.with_row(side, row));
        let starts = self.rows.iter().skip(1).map(|row| row.time).collect();
        let course = Course { period, rows: starts, length: table::length(&self.rows).filter(|_| !self.keys.once) };
        (course, rows.collect())
    }

    /// Whether the change makes the delay shorter at any time, in one direction. `base`: the settings without the change.
    pub(crate) fn shortens_delay(&self, side: Side, base: &DirectionConfig) -> bool {
        let base = base.delay.delay.as_nanos();
        let (course, rows) = self.course(side, 0);
        let mut delays: Vec<_> =
            rows.iter().map(|row| row.get("delay_ns").and_then(Value::as_u64).unwrap_or(base)).collect();
        if course.length.is_some() {
            delays.push(delays[0]);
        }
        if course.period.lasting.is_some() {
            delays.push(base);
        }
        if course.period.start > Instant::ZERO || self.keys.spread > Duration::ZERO {
            delays.insert(0, base);
        }
        delays.windows(2).any(|two| two[1] < two[0])
    }

    /// When it holds; `word` decides how much later than `start` it begins.
    fn period(&self, word: u64) -> Period {
        let spread = u128::from(self.keys.spread.as_nanos()) + 1;
        let later = (u128::from(word) * spread) >> 64;
        let start = Instant::ZERO + self.keys.start + Duration::from_nanos(later as u64);
        Period { start, lasting: self.keys.lasting, every: self.keys.every }
    }
}

/// A change's trace as rows.
pub fn rows_of(keys: &ChangeKeys, text: &dyn Fn(&str) -> Result<String, String>) -> Result<Vec<Row>, SettingError> {
    let Some(file) = &keys.trace else { return Ok(Vec::new()) };
    let hint = "a trace has lines of a time in seconds and a value for each column";
    let refused = |problem: String| SettingError::new("trace", problem, hint);
    let text = text(file).map_err(refused)?;
    table::read(&text, keys.columns.as_deref(), &DirectionConfig::keys())
        .map_err(|error| refused(format!("{file}: {error}")))
}

/// Whether two changes may hold at one time.
pub fn overlap(a: &ChangeKeys, b: &ChangeKeys) -> bool {
    // Of both: the first start, how long it holds at most, counted from there, and after how long again.
    let of = |change: &ChangeKeys| {
        let lasting = change.lasting.map(|lasting| lasting.as_nanos() + change.spread.as_nanos());
        (change.start.as_nanos(), lasting.unwrap_or(u64::MAX / 2), change.every.map(Duration::as_nanos))
    };
    let ((a_start, a_lasting, a_every), (b_start, b_lasting, b_every)) = (of(a), of(b));
    match (a_every, b_every) {
        (None, None) => a_start < b_start + b_lasting && b_start < a_start + a_lasting,
        (Some(every), None) => meets(a_start, a_lasting, every, b_start, b_lasting),
        (None, Some(every)) => meets(b_start, b_lasting, every, a_start, a_lasting),
        (Some(a_every), Some(b_every)) => {
            let step = gcd(a_every, b_every);
            let after = (i128::from(b_start) - i128::from(a_start)).rem_euclid(i128::from(step)) as u64;
            after < a_lasting || step - after < b_lasting
        }
    }
}

/// Whether the periods from `start`, `lasting` long and `every` so often, overlap `once` and the `length` after it.
const fn meets(start: u64, lasting: u64, every: u64, once: u64, length: u64) -> bool {
    let number = once.saturating_sub(start) / every;
    let (first, second) = (start + number * every, start + (number + 1) * every);
    (first < once + length && once < first + lasting) || second < once + length
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
