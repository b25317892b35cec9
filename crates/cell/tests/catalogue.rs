//! The program's self-description: complete, enforced, and named in the documentation.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_cell::{Catalogue, Cell};
use serde_json::{Map, Value, json};

fn catalogue() -> Value {
    serde_json::to_value(Catalogue::new()).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

fn names<'a>(values: &'a [Value], name: &str) -> Vec<&'a str> {
    values.iter().map(|value| value[name].as_str().unwrap()).collect()
}

/// Every group of keys, with its name.
fn groups(catalogue: &Value) -> Vec<(String, Vec<Value>)> {
    let group = |name: &str, value: &Value| (name.to_owned(), list(value, "keys").to_vec());
    let mut groups: Vec<_> = ["path", "host", "budget"].map(|name| group(name, &catalogue[name])).into();
    groups.extend(list(catalogue, "elements").iter().map(|it| group(it["name"].as_str().unwrap(), it)));
    groups.extend(list(catalogue, "workloads").iter().map(|it| group(it["kind"].as_str().unwrap(), it)));
    groups
}

#[test]
fn everything_says_what_it_is() {
    let catalogue = catalogue();
    for (group, keys) in groups(&catalogue) {
        for key in keys {
            assert!(!key["help"].as_str().unwrap().is_empty(), "{group}.{} has no help", key["name"]);
            let known = !key["default"].is_null() || !key["default_help"].is_null() || key["required"] == true;
            let optional = "size_bytes duration_ns rate_per_s probe_rate_per_s rate_bps server port env client_env server_env user resolver loss_bad_ns \
                            loss_enter loss_p13 lose hold lose_every loss_sequence bit_error_rate jitter_values";
            let mut optional = optional.split_ascii_whitespace();
            assert!(known || optional.any(|name| key["name"] == *name), "{group}.{}", key["name"]);
        }
    }
    for workload in list(&catalogue, "workloads") {
        assert!(!workload["help"].as_str().unwrap().is_empty() && !workload["sample"].as_str().unwrap().is_empty());
    }
    for table in ["samples", "objects", "packets", "spent", "pieces"] {
        for column in list(&catalogue, table) {
            assert!(column["help"].as_str().unwrap().ends_with('.'), "{table}: {column}");
            let has_unit = column["name"].as_str().unwrap().ends_with("_ns");
            assert_eq!(column["unit"] == "ns", has_unit, "{table}: {column}");
        }
    }
    for transport in list(&catalogue, "transports") {
        assert!(transport["summary"].as_str().unwrap().ends_with('.'), "{transport}");
    }
}

/// A cell with this `workload` over `transport`, and otherwise only `more`.
fn read(kind: &str, transport: Option<&Value>, more: &Map<String, Value>) -> Result<Cell, String> {
    let mut workload = json!({"kind": kind});
    if let Some(transport) = transport {
        workload["transport"] = transport.clone();
    }
    workload.as_object_mut().unwrap().extend(more.clone());
    Cell::from_value(json!({"schema": "crosswind.cell/1", "workload": workload})).map_err(|error| error.to_string())
}

#[test]
fn every_transport_that_is_listed_can_do_the_workload_and_no_other_can() {
    let catalogue = catalogue();
    for workload in list(&catalogue, "workloads") {
        let kind = workload["kind"].as_str().unwrap();
        if kind == "program" {
            assert_eq!(workload["transports"], json!([]));
            continue;
        }
        let more = if kind == "transfer" { json!({"size_bytes": 1000}) } else { json!({}) };
        for transport in list(&catalogue, "transports") {
            let listed = list(workload, "transports").contains(&transport["name"]);
            let read = read(kind, Some(&transport["name"]), more.as_object().unwrap());
            assert_eq!(read.is_ok(), listed, "{kind} over {}: {read:?}", transport["name"]);
        }
    }
}

#[test]
fn ranges_are_those_that_cells_are_held_to() {
    for workload in list(&catalogue(), "workloads") {
        let kind = workload["kind"].as_str().unwrap();
        let transport = workload["transports"].get(0);
        for key in list(workload, "keys") {
            let name = key["name"].as_str().unwrap();
            let set = |value: f64| {
                let value = if key["type"] == "integer" { json!(value as i64) } else { json!(value) };
                let mut more = Map::from_iter([(name.to_owned(), value)]);
                if name == "rate_per_s" && kind == "echo" {
                    more.insert("mode".into(), "open".into());
                }
                if kind == "program" {
                    more.insert("client".into(), json!(["true"]));
                }
                read(kind, transport, &more)
            };
            let outside = |message: Result<Cell, String>| {
                message.is_err_and(|message| {
                    message.starts_with(&format!("workload.{name} ")) && message.contains("is not between")
                })
            };
            if let (Some(minimum), Some(maximum)) = (key["minimum"].as_f64(), key["maximum"].as_f64()) {
                let step = if key["type"] == "integer" { 1.0 } else { 0.0005 };
                assert!(outside(set(minimum - step)) && outside(set(maximum + 1.0)), "{kind}.{name}");
                assert!(!outside(set(minimum)) && !outside(set(maximum)), "{kind}.{name}");
            }
        }
    }
}

#[test]
fn the_protocols_documentation_names_everything_in_the_catalogue() {
    let text = include_str!("../../../docs/cell-protocol.md");
    let missing = |name: &str| !text.contains(&format!("`{name}`"));
    let catalogue = catalogue();
    let mut absent: Vec<String> = Vec::new();
    for (group, keys) in groups(&catalogue) {
        let own: Vec<_> = names(&keys, "name").into_iter().filter(|name| missing(name)).collect();
        absent.extend(own.iter().map(|name| format!("{group}.{name}")));
        for key in &keys {
            let choices = key["choices"].as_array().into_iter().flatten().filter_map(Value::as_str);
            absent.extend(choices.filter(|choice| missing(choice)).map(|choice| format!("{group}: {choice}")));
        }
    }
    absent.extend(names(list(&catalogue, "transports"), "name").into_iter().filter(|it| missing(it)).map(Into::into));
    absent.extend(names(list(&catalogue, "workloads"), "kind").into_iter().filter(|it| missing(it)).map(Into::into));
    absent.extend(
        names(list(&catalogue["host"], "profiles"), "name").into_iter().filter(|it| missing(it)).map(Into::into),
    );
    absent.extend(catalogue["events"].as_object().unwrap().keys().filter(|it| missing(it)).cloned());
    assert_eq!(absent, Vec::<String>::new(), "docs/cell-protocol.md does not name these");
}
