//! Tables of values over time: one line a time, the usual form of published network traces.
//!
//! A line has a time in seconds and a value for each column, separated by commas, semicolons, tabs or spaces. Empty
//! lines and text behind `#` do not count. A first line of words names the columns. Values are in the usual units:
//! rates in Mbit/s, times in ms, sizes in bytes, probabilities from 0 to 1.
//!
//! A table of whole numbers, three or more a line and without names, has `CellReplay`'s base delays and light
//! deliveries (README of its repository): a time in ms, the delay then in ms, and the arrival times in ms after a
//! burst's first packet.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use crosswind_settings::{Key, KeyType, SettingError, Unit};
use crosswind_units::Duration;
use serde_json::{Map, Number, Value};

/// The first column's possible names.
const TIMES: [&str; 5] = ["time", "t", "time_s", "seconds", "timestamp"];

/// Rows per table: nobody replays a longer trace.
const MOST_ROWS: usize = 200_000;

/// `CellReplay`'s times in ms are below: 11 days.
const MOST_MS: u64 = 1_000_000_000;

/// One line: its time, and the keys' values from then on.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Since the table's beginning.
    pub time: Duration,
    /// By the keys' names in a cell.
    pub values: Map<String, Value>,
}

/// A malformed table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
    /// A sentence with the line as its subject.
    pub problem: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} {}", self.line, self.problem)
    }
}

/// A table's rows.
///
/// `columns` are the value columns' names, as a study calls `keys`; none leaves that to the first line, and without
/// names there the only column is the rate.
///
/// # Errors
/// The first malformed line.
pub fn read(text: &str, columns: Option<&[String]>, keys: &[Key]) -> Result<Vec<Row>, TableError> {
    if columns.is_none() && is_of_cellreplay(text) {
        return read_cellreplay(text, keys);
    }
    let mut named: Option<Vec<&Key>> = None;
    let mut rows: Vec<Row> = Vec::new();
    let mut last = 0;
    for (line, content) in (1..).zip(text.lines()) {
        let refuse = |problem: String| Err(TableError { line, problem });
        let content = content.split('#').next().unwrap_or_default();
        let fields: Vec<&str> = content.split([',', ';', '\t', ' ', '\r']).filter(|field| !field.is_empty()).collect();
        let Some(first) = fields.first() else { continue };
        last = line;
        let is_header = rows.is_empty() && named.is_none() && first.parse::<f64>().is_err();
        if is_header && fields.len() > 1 && !TIMES.contains(first) {
            return refuse(format!("has {first} as its first column, not time, in seconds"));
        }
        if named.is_none() {
            let of_line: Vec<String> = fields[1..].iter().map(|field| (*field).to_owned()).collect();
            let names = match (columns, is_header) {
                (Some(columns), _) => columns,
                (None, true) => &of_line,
                (None, false) => &["rate".to_owned()],
            };
            named = Some(keys_of(names, keys).map_err(|problem| TableError { line, problem })?);
        }
        if is_header {
            continue;
        }
        let named = named.as_deref().unwrap_or_default();
        if fields.len() != named.len() + 1 {
            return refuse(format!("has {} fields, not a time and {} more", fields.len(), named.len()));
        }
        let Some(time) = number(first).filter(|time| *time >= 0.0).and_then(|time| whole(time * 1e9)) else {
            return refuse(format!("has {first} for a time in seconds"));
        };
        let time = Duration::from_nanos(time);
        if rows.last().is_some_and(|before| before.time >= time) {
            return refuse(format!("has the time {first}, which is not after the one before it"));
        }
        if rows.len() >= MOST_ROWS {
            return refuse(format!("is one too many: a table has {MOST_ROWS} rows at most"));
        }
        let mut values = Map::new();
        for (key, field) in named.iter().zip(&fields[1..]) {
            let value = value_of(key, field).ok_or_else(|| format!("has {field} for {}", key.study));
            let checked = |value| key.check(&value).map(|()| value).map_err(|error| of_key(key, &error));
            let value = value.and_then(checked);
            values.insert(key.name.clone(), value.map_err(|problem| TableError { line, problem })?);
        }
        rows.push(Row { time, values });
    }
    if rows.is_empty() {
        return Err(TableError { line: last.max(1), problem: "is the last, and there is no row before it".to_owned() });
    }
    Ok(rows)
}

/// What is wrong with a value of a key, which has the name of a study.
fn of_key(key: &Key, error: &SettingError) -> String {
    format!("{} {}", key.study, error.problem)
}

/// The keys set by a `CellReplay` line, by their study names.
const OF_CELLREPLAY: [&str; 2] = ["delay", "light_deliveries"];

/// Whether the first line with content is `CellReplay`'s.
fn is_of_cellreplay(text: &str) -> bool {
    let first =
        text.lines().map(str::split_whitespace).map(Iterator::collect::<Vec<_>>).find(|words| !words.is_empty());
    first
        .is_some_and(|words| words.len() > 2 && words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_digit())))
}

fn read_cellreplay(text: &str, keys: &[Key]) -> Result<Vec<Row>, TableError> {
    let key = |name: &str| keys.iter().find(|key| key.study == name);
    let [Some(delay), Some(light)] = OF_CELLREPLAY.map(key) else {
        return Err(TableError { line: 1, problem: "has deliveries, which no key of the path takes".to_owned() });
    };
    let mut rows: Vec<Row> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let refuse = |problem: String| Err(TableError { line, problem });
        let mut numbers = Vec::new();
        for word in content.split_whitespace() {
            match word.parse::<u64>().ok().filter(|number| *number < MOST_MS) {
                Some(number) => numbers.push(number),
                None => return refuse(format!("has {word} for a time in ms")),
            }
        }
        let [time, base, times @ ..] = &numbers[..] else {
            match numbers.len() {
                0 => continue,
                _ => return refuse("has no delay behind its time".to_owned()),
            }
        };
        let time = Duration::from_millis(*time);
        if rows.last().is_some_and(|before| before.time >= time) {
            return refuse(format!("has the time {} ms, which is not after the one before it", numbers[0]));
        }
        if rows.len() >= MOST_ROWS {
            return refuse(format!("is one too many: a table has {MOST_ROWS} rows at most"));
        }
        let unsorted = times.windows(2).map(|pair| (pair[0], pair[1])).find(|(before, after)| after < before);
        if let Some((before, after)) = unsorted {
            return refuse(format!("has a delivery at {after} ms behind one at {before} ms"));
        }
        // Without a delivery of its own even the first packet waits for the busy link.
        let deliveries = if times.is_empty() { Value::Null } else { Value::from(times) };
        let values = [(delay, Value::from(base * 1_000_000)), (light, deliveries)];
        for (key, value) in &values {
            key.check(value).map_err(|error| TableError { line, problem: of_key(key, &error) })?;
        }
        let values = values.into_iter().map(|(key, value)| (key.name.clone(), value)).collect();
        rows.push(Row { time, values });
    }
    Ok(rows)
}

/// After how long the rows begin again: the last holds as long as the one before it.
pub fn length(rows: &[Row]) -> Option<Duration> {
    let [.., before, last] = rows else { return None };
    Some(last.time + Duration::from_nanos(last.time.as_nanos() - before.time.as_nanos()))
}

/// Rows with each column's minimum and maximum.
pub fn extremes(rows: &[Row]) -> Vec<&Row> {
    let columns = rows.first().into_iter().flat_map(|row| row.values.keys());
    let of_column = columns.flat_map(|key| {
        let number = |row: &&Row| row.values.get(key).and_then(Value::as_f64).unwrap_or_default();
        let least = rows.iter().min_by(|a, b| number(a).total_cmp(&number(b)));
        let greatest = rows.iter().max_by(|a, b| number(a).total_cmp(&number(b)));
        [least, greatest]
    });
    of_column.flatten().collect()
}

/// The rows' numbers as means over time; other values are the first row's.
pub fn mean(rows: &[Row]) -> Map<String, Value> {
    let Some(first) = rows.first() else { return Map::new() };
    let end = length(rows).unwrap_or(Duration::from_nanos(first.time.as_nanos() + 1)).as_nanos();
    // Before the first row the trace has its values.
    let starts = rows.iter().enumerate().map(|(number, row)| if number == 0 { 0 } else { row.time.as_nanos() });
    let ends = rows.iter().skip(1).map(|row| row.time.as_nanos()).chain([end]);
    let lengths: Vec<f64> = starts.zip(ends).map(|(start, end)| (end - start) as f64).collect();
    first
        .values
        .iter()
        .map(|(key, value)| {
            let numbers = rows.iter().map(|row| row.values.get(key).and_then(Value::as_f64).unwrap_or_default());
            let sum: f64 = numbers.zip(&lengths).map(|(number, length)| number * length).sum();
            let mean = sum / lengths.iter().sum::<f64>();
            let mean = match value {
                Value::Number(number) if number.is_u64() => Value::from(mean as u64),
                Value::Number(_) => Value::from(mean),
                other => other.clone(),
            };
            (key.clone(), mean)
        })
        .collect()
}

fn keys_of<'a>(names: &[String], keys: &'a [Key]) -> Result<Vec<&'a Key>, String> {
    if names.is_empty() {
        return Err("has no column beside the time".to_owned());
    }
    if let Some(twice) = names.iter().enumerate().find_map(|(at, name)| names[..at].contains(name).then_some(name)) {
        return Err(format!("has the column {twice} twice"));
    }
    let find = |name: &String| {
        let key = keys.iter().find(|key| key.study == *name);
        key.ok_or_else(|| format!("has a column {name}, which is no key of a path"))
    };
    names.iter().map(find).collect()
}

/// A field as a key's value, in the key's unit.
fn value_of(key: &Key, field: &str) -> Option<Value> {
    let scale = match key.unit {
        Some(Unit::Ns | Unit::BitsPerSecond) => 1e6,
        _ => 1.0,
    };
    match key.key_type {
        KeyType::Integer => number(field).and_then(|value| whole(value * scale)).map(Value::from),
        KeyType::Number => number(field).and_then(Number::from_f64).map(Value::Number),
        KeyType::Boolean => field.parse::<bool>().ok().map(Value::Bool),
        KeyType::Choice => Some(Value::String(field.to_string())),
        _ => None,
    }
}

fn number(field: &str) -> Option<f64> {
    field.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// The nearest whole number.
fn whole(value: f64) -> Option<u64> {
    let nearest = value + 0.5;
    (value >= 0.0 && nearest < 9e15).then_some(nearest as u64)
}
