//! The catalogue: all keys of a cell, and all its output, as the program itself knows them.

use crate::check::Answer;
use crate::connections::{ConnectionPart, ConnectionRow};
use crate::event::Event;
use crate::limits::{ConnectionLimits, ExchangeLimits};
use crate::pieces::{ConnectionPiece, ExchangePiece};
use crate::spent::Spent;
use crate::{Flow, PathSection};
use crosswind_attribution::PartGroup;
use crosswind_host::{HostConfig, HostGroup};
use crosswind_ledger::{Budget, Column, FlowInterval, PacketRecord, Row};
use crosswind_path::{DirectionConfig, ElementGroup, PathConfig};
use crosswind_settings::{Group, Key};
use crosswind_transport::{About, TcpSample};
use crosswind_workload::{PageObject, Sample, WorkloadKind};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

/// Everything a cell can be.
#[derive(Debug, Serialize)]
pub struct Catalogue {
    schema: &'static str,
    version: &'static str,
    /// Keys of a path common to both directions.
    path: &'static Group,
    /// One direction's elements, in packet order.
    elements: Vec<ElementGroup>,
    /// Keys of a change of the path, beside a direction's.
    changes: &'static Group,
    host: HostGroup,
    budget: &'static Group,
    transports: Vec<About>,
    workloads: Vec<Workload>,
    /// Keys of a flow, beside its workload's.
    flows: &'static Group,
    /// Columns of a cell's tables.
    samples: &'static [Column<Sample>],
    objects: &'static [Column<PageObject>],
    packets: &'static [Column<PacketRecord>],
    flow_intervals: &'static [Column<FlowInterval>],
    spent: &'static [Column<Spent>],
    tcp: &'static [Column<TcpSample>],
    /// The causes of delay, by groups.
    parts: Vec<PartGroup>,
    pieces: &'static [Column<ExchangePiece>],
    limits: &'static [Column<ExchangeLimits>],
    connections: &'static [Column<ConnectionRow>],
    connection_parts: &'static [Column<ConnectionPart>],
    connection_pieces: &'static [Column<ConnectionPiece>],
    connection_limits: &'static [Column<ConnectionLimits>],
    /// The JSON Schema of every event, by its name.
    events: Map<String, Value>,
}

/// A kind of workload, with its keys and its possible transports.
#[derive(Debug, Serialize)]
struct Workload {
    kind: &'static str,
    help: &'static str,
    sample: &'static str,
    transports: Vec<&'static str>,
    keys: &'static [Key],
}

impl Catalogue {
    /// Of this program.
    pub fn new() -> Self {
        Self {
            schema: "crosswind.catalogue/1",
            version: env!("CARGO_PKG_VERSION"),
            path: PathSection::describe(),
            elements: DirectionConfig::describe(),
            changes: PathConfig::describe_change(),
            host: HostConfig::describe(),
            budget: Budget::describe(),
            transports: crosswind_transport::all().map(|transport| transport.about()).collect(),
            workloads: crosswind_workload::kinds().map(Workload::new).collect(),
            flows: Flow::describe(),
            samples: Row::COLUMNS,
            objects: Row::COLUMNS,
            packets: Row::COLUMNS,
            flow_intervals: Row::COLUMNS,
            spent: Row::COLUMNS,
            tcp: Row::COLUMNS,
            parts: PartGroup::all(),
            pieces: Row::COLUMNS,
            limits: Row::COLUMNS,
            connections: Row::COLUMNS,
            connection_parts: Row::COLUMNS,
            connection_pieces: Row::COLUMNS,
            connection_limits: Row::COLUMNS,
            events: variants::<Event>().into_iter().chain(variants::<Answer>()).collect(),
        }
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl Workload {
    fn new(kind: &'static WorkloadKind) -> Self {
        let Group { help, keys } = kind.settings();
        let transports = kind.transports().map(|transport| transport.name()).collect();
        Self { kind: kind.name, help, sample: kind.sample, transports, keys }
    }
}

/// The schemas of an enum's variants, by their tag `event`.
fn variants<T: JsonSchema>() -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let alternatives = schema.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    alternatives
        .filter_map(|variant| {
            let name = variant.pointer("/properties/event/const")?.as_str()?;
            Some((name.to_owned(), variant.clone()))
        })
        .collect()
}
