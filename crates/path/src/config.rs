//! A path's settings in a cell, checked.
//!
//! Only `registry.rs` lists the elements; everything here goes through its list.

use crate::change::{Change, ChangeKeys, MAX_TIME_NS, overlap, rows_of};
use crate::direction::{Direction, Path, Side};
use crate::loss::LossRule;
use crate::registry::DirectionConfig;
use crate::table;
use crate::{Arrival, CompiledElement, CompiledStage, Course, Effect, ElementSettings, Outcome, Packet};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use crosswind_settings::{Group, Key, SettingError, plain};
use crosswind_units::{Duration, Instant, Seed};

use crate::derive::Serialize;
use serde_json::{Map, Value};

/// The hops between client and server, and their changes over time.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// One or more, the client's first.
    pub hops: Vec<Hop>,
    /// Links of further pairs of hosts, between their clients and the first hop: pair 1's, pair 2's and so on. They do
    /// not affect the first hosts' packets, and never change.
    pub access: Vec<Hop>,
    /// In their given order.
    pub changes: Vec<Change>,
}

/// One stretch of the path, with each direction's elements.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hop {
    /// Its name; empty if it is the only one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Client to server.
    pub forward: DirectionConfig,
    /// Server to client.
    pub reverse: DirectionConfig,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self { hops: vec![Hop::default()], access: Vec::new(), changes: Vec::new() }
    }
}

impl Hop {
    /// Its settings in one direction.
    pub fn side(&self, side: Side) -> &DirectionConfig {
        side.pick(&self.forward, &self.reverse)
    }

    /// The same, to be changed.
    pub fn side_mut(&mut self, side: Side) -> &mut DirectionConfig {
        side.pick(&mut self.forward, &mut self.reverse)
    }
}

impl PathConfig {
    /// A path with one hop, without a name.
    pub fn one_hop(forward: DirectionConfig, reverse: DirectionConfig) -> Self {
        Self { hops: vec![Hop { name: String::new(), forward, reverse }], ..Self::default() }
    }

    /// The path in `object`, checked, with every default filled in: `forward` and `reverse` for one hop or `hops` for
    /// several, and `changes`.
    ///
    /// # Errors
    /// An invalid key, dotted, as `hops.0.forward.loss`.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, SettingError> {
        Self::read(object, &|file| Err(format!("cannot be read here: {file}")))
    }

    /// The same, with its traces; `text` gives a file's content, or the reason it cannot be read.
    ///
    /// # Errors
    /// As [`from_object`](Self::from_object), and a trace's malformed line.
    pub fn read(
        object: &Map<String, Value>,
        text: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, SettingError> {
        let known = ["forward", "reverse", "hops", "changes"];
        if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(SettingError::new(unknown, "is not a known key", format!("known keys: {}", known.join(", "))));
        }
        let listed = list_of(object, "hops", |hop| {
            let name = hop.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
            let hint = "give each hop a name, as wifi";
            let name = name.ok_or_else(|| SettingError::missing("name", hint))?.to_owned();
            Ok(Hop { name, forward: direction_of(hop, "forward")?, reverse: direction_of(hop, "reverse")? })
        })?;
        let hops = match listed {
            Some(hops) if object.contains_key("forward") || object.contains_key("reverse") || hops.is_empty() => {
                let problem = if hops.is_empty() { "is empty" } else { "and forward or reverse exclude each other" };
                return Err(SettingError::new("hops", problem, "give the settings of each hop with it"));
            }
            Some(hops) if hops.len() > MOST_HOPS => {
                let problem = format!("has {} hops", hops.len());
                return Err(SettingError::new("hops", problem, format!("a path has {MOST_HOPS} hops at most")));
            }
            Some(hops) => hops,
            None => {
                let [forward, reverse] = [direction_of(object, "forward")?, direction_of(object, "reverse")?];
                vec![Hop { name: String::new(), forward, reverse }]
            }
        };
        let changes = list_of(object, "changes", |change| {
            let mut keys = change.clone();
            let [forward, reverse] = ["forward", "reverse"].map(|side| keys.shift_remove(side));
            let keys: ChangeKeys = crosswind_settings::read(&keys)?;
            Ok(Change {
                rows: rows_of(&keys, text)?,
                keys,
                forward: changed_keys(forward, "forward")?,
                reverse: changed_keys(reverse, "reverse")?,
            })
        })?;
        let config = Self { hops, access: Vec::new(), changes: changes.unwrap_or_default() };
        config.check()?;
        Ok(config)
    }

    /// A change's keys beside the direction's.
    pub fn describe_change() -> &'static Group {
        crosswind_settings::describe::<ChangeKeys>()
    }

    /// Whether its hops, and its changes, are compatible.
    ///
    /// # Errors
    /// Missing or duplicate hop names; a change without a hop or an effect, or to mutually exclusive settings; two
    /// changes of one key at one time. The key is dotted, as `changes.0.hop`.
    pub fn check(&self) -> Result<(), SettingError> {
        let twice = |number: usize| self.hops[..number].iter().any(|hop| hop.name == self.hops[number].name);
        if let Some(number) = (0..self.hops.len()).find(|number| twice(*number)) {
            let problem = format!("{} is the name of two hops", self.hops[number].name);
            return Err(SettingError::new(format!("hops.{number}.name"), problem, "give each hop a name of its own"));
        }
        for (number, change) in self.changes.iter().enumerate() {
            self.check_change(change).map_err(|error| error.within(&format!("changes.{number}")))?;
        }
        self.check_overlaps()?;
        for side in Side::BOTH {
            self.compiled(side, Seed(0))?;
        }
        Ok(())
    }

    fn check_change(&self, change: &Change) -> Result<(), SettingError> {
        let names = || self.hops.iter().map(|hop| hop.name.as_str()).collect::<Vec<_>>().join(", ");
        match &change.keys.hop {
            Some(name) if self.hops.iter().all(|hop| hop.name != *name) => {
                let hint = match self.hops.as_slice() {
                    [hop] if hop.name.is_empty() => "leave it out: the path has one hop".to_owned(),
                    _ => format!("hops: {}", names()),
                };
                return Err(SettingError::new("hop", format!("{name} is no hop"), hint));
            }
            None if self.hops.len() > 1 => {
                return Err(SettingError::missing("hop", format!("say which hop changes: {}", names())));
            }
            _ => {}
        }
        if change.forward.is_empty() && change.reverse.is_empty() && change.rows.is_empty() {
            return Err(SettingError::new("forward", "changes nothing", "give a key of the path and its other value"));
        }
        if change.keys.every.is_some_and(|every| change.keys.lasting.is_none_or(|lasting| lasting >= every)) {
            return Err(SettingError::new("every_ns", "is not longer than for", "let each change end before the next"));
        }
        Ok(())
    }

    /// Two changes of one key at one time are ambiguous.
    fn check_overlaps(&self) -> Result<(), SettingError> {
        for (number, change) in self.changes.iter().enumerate() {
            for before in &self.changes[..number] {
                let key = Side::BOTH
                    .into_iter()
                    .find_map(|side| change.names(side).find(|key| before.names(side).any(|other| other == *key)));
                if let Some(key) = key
                    && before.keys.hop == change.keys.hop
                    && overlap(&before.keys, &change.keys)
                {
                    let problem = format!("changes {} while another change of it may hold", plain(key));
                    let hint = "give the changes times that do not overlap";
                    return Err(SettingError::new(format!("changes.{number}.start_ns"), problem, hint));
                }
            }
        }
        Ok(())
    }

    /// One direction of the path, with random decisions from `seed`.
    ///
    /// # Panics
    /// When [`check`](Self::check) refuses the path.
    pub fn direction(&self, side: Side, seed: Seed) -> Direction {
        let stages = self.compiled(side, seed);
        Direction::of_compiled(stages.unwrap_or_else(|error| unreachable!("a path that was not checked: {error}")))
    }

    /// The hops over time; `seed` is [`direction`](Self::direction)'s.
    pub fn timeline(&self, seed: Seed) -> Timeline {
        let chance = seed.child("changes");
        let mut courses = Vec::new();
        for (number, change) in self.changes.iter().enumerate() {
            let word = chance.word(number as u64);
            for (hop, _) in self.hops.iter().enumerate().filter(|(_, hop)| change.is_of(&hop.name)) {
                for side in Side::BOTH.into_iter().filter(|side| change.names(*side).next().is_some()) {
                    let (course, rows) = change.course(side, word);
                    courses.push(HopCourse { hop, side, course, rows });
                }
            }
        }
        Timeline { hops: self.hops.clone(), courses }
    }

    /// One direction's compiled elements in packet order; random decisions come from `seed`.
    ///
    /// # Errors
    /// Changes that lead to mutually exclusive settings.
    pub fn compiled(&self, side: Side, seed: Seed) -> Result<Vec<CompiledStage>, SettingError> {
        let (own, chance) = (seed.child(side.name()), seed.child("changes"));
        let mut stages = Vec::new();
        for (number, hop) in self.in_order(side) {
            // The first hop draws as the only hop of a path does.
            let seed = if number == 0 { own } else { own.child(&hop.name) };
            let changes: Vec<_> = (0..)
                .zip(&self.changes)
                .filter(|(_, change)| change.is_of(&hop.name))
                .map(|(number, change)| change.course(side, chance.word(number)))
                .collect();
            let elements = hop.side(side).compiled_with(&changes)?;
            stages.extend(elements.into_iter().map(|element| CompiledStage {
                hop: number as u8,
                pair: 0,
                element,
                seed,
            }));
        }
        let access = self.access.iter().zip(1..).flat_map(|(hop, pair)| {
            let (number, seed) = (self.hops.len() as u8 + pair - 1, own.child("access").child(&hop.name));
            let elements = hop.side(side).compiled().into_iter();
            elements.map(move |element| CompiledStage { hop: number, pair, element, seed })
        });
        let at = side.pick(0, stages.len());
        stages.splice(at..at, access);
        Ok(stages)
    }

    /// The hops and their numbers, in packet order.
    fn in_order(&self, side: Side) -> Vec<(usize, &Hop)> {
        let mut hops: Vec<_> = self.hops.iter().enumerate().collect();
        if side == Side::Reverse {
            hops.reverse();
        }
        hops
    }

    /// A hop's settings in one direction: unchanged, and with each change alone, if valid alone.
    pub fn variants_of(&self, hop: &Hop, side: Side) -> impl Iterator<Item = DirectionConfig> {
        let base = hop.side(side);
        let changed = self.changes.iter().filter(|change| change.is_of(&hop.name)).flat_map(move |change| {
            let rows = if change.has_trace(side) { table::extremes(&change.rows) } else { Vec::new() };
            let of_rows = rows.into_iter().filter_map(move |row| base.with(&change.with_row(side, row)).ok());
            of_rows.chain(base.with(change.side(side)).ok())
        });
        changed.chain([base.clone()])
    }

    /// The same of all hops.
    fn variants(&self, side: Side) -> impl Iterator<Item = DirectionConfig> {
        self.hops.iter().flat_map(move |hop| self.variants_of(hop, side))
    }

    /// A packet's longest delay in one direction, without time on the wire or behind other packets.
    pub fn longest_delay(&self, side: Side) -> Duration {
        self.hops.iter().fold(Duration::ZERO, |sum, hop| {
            sum + self.variants_of(hop, side).map(|config| config.longest_delay()).max().unwrap_or_default()
        })
    }

    /// The longest delay there and back, for any pair of hosts.
    pub fn longest_round_trip(&self) -> Duration {
        let of_link = |hop: &Hop| hop.forward.longest_delay() + hop.reverse.longest_delay();
        self.round_trip() + self.access.iter().map(of_link).max().unwrap_or_default()
    }

    /// The longest delay there and back.
    pub fn round_trip(&self) -> Duration {
        self.longest_delay(Side::Forward) + self.longest_delay(Side::Reverse)
    }

    /// One direction's overall effect on traffic, without changes. A trace from the first packet on for good counts as
    /// its mean over time.
    pub fn effect(&self, side: Side) -> Effect {
        let mut effect = Effect::default();
        for (_, hop) in self.in_order(side) {
            let lasts = |change: &&Change| change.keys.start == Duration::ZERO && change.keys.lasting.is_none();
            let of_hop =
                self.changes.iter().filter(|change| change.is_of(&hop.name) && change.has_trace(side)).filter(lasts);
            let means = of_hop.fold(hop.side(side).clone(), |config, change| {
                config.with(&table::mean(&change.rows)).unwrap_or(config)
            });
            effect = effect.then(means.effect());
        }
        Effect {
            reorders: self.hops.iter().any(|hop| self.reorders(hop, side)),
            changes: effect.changes || self.changes.iter().any(|change| change.names(side).next().is_some()),
            outage: self.longest_outage(side),
            ..effect
        }
    }

    /// Whether a hop ever lets packets overtake.
    fn reorders(&self, hop: &Hop, side: Side) -> bool {
        let (mut may, mut does) = (false, false);
        for config in self.variants_of(hop, side) {
            may |= config.delay.reorder;
            does |= config.effect().reorders;
        }
        let mut changes = self.changes.iter().filter(|change| change.is_of(&hop.name));
        does || may && changes.any(|change| change.shortens_delay(side, hop.side(side)))
    }

    /// The longest time a change loses every packet in one direction.
    fn longest_outage(&self, side: Side) -> Duration {
        let outages = self.changes.iter().filter(|change| {
            let hops = self.hops.iter().filter(|hop| change.is_of(&hop.name));
            let mut changed = hops.filter_map(|hop| hop.side(side).with(change.side(side)).ok());
            change.names(side).next().is_some() && changed.any(|config| config.effect().loss.as_fraction() >= 1.0)
        });
        outages.map(|change| change.keys.lasting.unwrap_or(Duration::from_nanos(MAX_TIME_NS))).max().unwrap_or_default()
    }

    /// The smallest MTU at any time in one direction.
    pub fn least_mtu(&self, side: Side) -> Option<u32> {
        self.variants(side).filter_map(|config| config.effect().mtu_bytes).min()
    }

    /// The largest packet sure to pass in one direction, if larger ones silently vanish at some time; else none.
    pub fn black_hole(&self, side: Side) -> Option<u32> {
        self.variants(side)
            .filter(|config| config.mtu.mtu_black_hole)
            .filter_map(|config| config.mtu.link_mtu_bytes)
            .min()
    }

    /// Whether the path does something else to the same packets with another seed.
    pub fn is_random(&self) -> bool {
        let draws = |side| self.variants(side).any(|config| config.is_random());
        self.changes.iter().any(|change| change.keys.spread > Duration::ZERO) || Side::BOTH.into_iter().any(draws)
    }

    /// The path without its losses, where these alone are random and depend on nothing but a packet's index.
    pub fn without_index_losses(&self) -> Option<Self> {
        let mut config = self.clone();
        for side in Side::BOTH {
            for hop in &mut config.hops {
                let loss = core::mem::take(&mut hop.side_mut(side).loss);
                if loss.is_random() && !matches!(loss.rule(), LossRule::Independent(_) | LossRule::Markov { .. }) {
                    return None;
                }
            }
        }
        (self.changes.is_empty() && !config.is_random()).then_some(config)
    }

    /// The indices of packets that one direction loses, among its first `packets`.
    ///
    /// # Errors
    /// As [`compiled`](Self::compiled).
    pub fn lost_packets(&self, side: Side, seed: Seed, packets: u64) -> Result<Vec<u64>, SettingError> {
        let of_losses = |stage: CompiledStage| match stage.element {
            CompiledElement::loss(_) if stage.pair == 0 => stage.element.make(stage.seed),
            _ => None,
        };
        let mut losses: Vec<_> = self.compiled(side, seed)?.into_iter().filter_map(of_losses).collect();
        let mut is_lost = |index: &u64| {
            let mut packet = Packet::entering(*index, Instant::ZERO, Arrival::default());
            // As in the path, a packet lost in one hop does not reach the next.
            losses.iter_mut().any(|loss| matches!(loss.judge_packet(&mut packet), Outcome::Drops(_)))
        };
        Ok((0..packets).filter(|index| is_lost(index)).collect())
    }
}

impl Path {
    /// The path for `config`; random decisions come from `seed`.
    pub fn from_config(config: &PathConfig, seed: Seed) -> Self {
        let [forward, reverse] = Side::BOTH.map(|side| config.direction(side, seed));
        Self::new(forward, reverse)
    }
}

/// The hops of a path over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    hops: Vec<Hop>,
    courses: Vec<HopCourse>,
}

/// A hop's changes in one direction.
#[derive(Clone, Debug)]
struct HopCourse {
    hop: usize,
    side: Side,
    course: Course,
    /// Each row's settings.
    rows: Vec<Map<String, Value>>,
}

impl Timeline {
    /// The hops at `now`, counted from the first packet, and the next change.
    ///
    /// # Panics
    /// When [`PathConfig::check`] refuses the path.
    pub fn at(&self, now: Instant) -> (Vec<Hop>, Option<Instant>) {
        let mut hops = self.hops.clone();
        let mut next: Option<Instant> = None;
        for HopCourse { hop, side, course, rows } in &self.courses {
            let (row, until) = course.state(now);
            next = next.into_iter().chain(until).min();
            if let Some(row) = row {
                let config = hops[*hop].side_mut(*side);
                let changed = config.with(&rows[row]);
                *config = changed.unwrap_or_else(|error| unreachable!("a path that was not checked: {error}"));
            }
        }
        (hops, next)
    }
}

/// Nobody has a path with more.
const MOST_HOPS: usize = 16;

/// Each object of the list called `name`; none where there is no such list.
fn list_of<T>(
    object: &Map<String, Value>,
    name: &str,
    read: impl Fn(&Map<String, Value>) -> Result<T, SettingError>,
) -> Result<Option<Vec<T>>, SettingError> {
    let Some(list) = object.get(name) else { return Ok(None) };
    let refused = || SettingError::new(name, "is no list of objects", "docs/cell-protocol.md lists every key");
    let items = list.as_array().ok_or_else(refused)?.iter().enumerate().map(|(number, item)| {
        read(item.as_object().ok_or_else(refused)?).map_err(|error| error.within(&format!("{name}.{number}")))
    });
    items.collect::<Result<_, _>>().map(Some)
}

fn direction_of(object: &Map<String, Value>, name: &str) -> Result<DirectionConfig, SettingError> {
    let settings = match object.get(name) {
        None => &Map::new(),
        Some(Value::Object(settings)) => settings,
        Some(_) => return Err(SettingError::new(name, "is no JSON object", "docs/cell-protocol.md lists every key")),
    };
    DirectionConfig::from_object(settings).map_err(|error| error.within(name))
}

/// The new settings in one direction during a change: keys with valid values.
fn changed_keys(object: Option<Value>, name: &str) -> Result<Map<String, Value>, SettingError> {
    let settings = match object {
        None => Map::new(),
        Some(Value::Object(settings)) => settings,
        Some(_) => return Err(SettingError::new(name, "is no JSON object", "docs/cell-protocol.md lists every key")),
    };
    crosswind_settings::check(&settings, &DirectionConfig::keys()).map_err(|error| error.within(name))?;
    Ok(settings)
}

impl DirectionConfig {
    /// The keys of every kind of element.
    pub fn keys() -> Vec<Key> {
        Self::describe().into_iter().flat_map(|element| element.group.keys.clone()).collect()
    }

    /// The settings in `object`, checked, with every default filled in.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, SettingError> {
        crosswind_settings::check(object, &Self::keys())?;
        let config = Self::read_each(object)?;
        config.each().into_iter().try_for_each(|(_, settings)| settings.check_lasting())?;
        Ok(config)
    }

    /// These settings with the values of `changed`.
    fn with(&self, changed: &Map<String, Value>) -> Result<Self, SettingError> {
        let mut object = match serde_json::to_value(self) {
            Ok(Value::Object(object)) => object,
            other => unreachable!("settings are no object: {other:?}"),
        };
        object.extend(changed.clone());
        Self::read_each(&object)
    }
}

impl TryFrom<Map<String, Value>> for DirectionConfig {
    type Error = SettingError;

    fn try_from(object: Map<String, Value>) -> Result<Self, SettingError> {
        Self::from_object(&object)
    }
}

impl Serialize for PathConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        match self.hops.as_slice() {
            [hop] if hop.name.is_empty() => {
                map.serialize_entry("forward", &hop.forward)?;
                map.serialize_entry("reverse", &hop.reverse)?;
            }
            hops => map.serialize_entry("hops", hops)?,
        }
        if !self.changes.is_empty() {
            map.serialize_entry("changes", &self.changes)?;
        }
        map.end()
    }
}
