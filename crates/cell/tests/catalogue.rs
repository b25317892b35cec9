//! What the program says of itself: complete, held to, and named in the documentation.
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

/// Every group of keys, with what it is called.
fn groups(catalogue: &Value) -> Vec<(String, Vec<Value>)> {
    let group = |name: &str, value: &Value| (name.to_owned(), list(value, "keys").to_vec());
    let mut groups: Vec<_> = ["path", "host", "budget"].map(|name| group(name, &catalogue[name])).into();
    groups.extend(list(catalogue, "elements").iter().map(|it| group(it["name"].as_str().unwrap(), it)));
    groups.extend(list(catalogue, "workloads").iter().map(|it| group(it["kind"].as_str().unwrap(), it)));
    groups
}

#[test]
fn the_catalogue_names_everything() {
    let catalogue = catalogue();
    let expected = "path: backend family mtu_bytes server
host: profile congestion_control nodelay sack timestamps window_scaling ecn tail_loss_probe slow_start_after_idle \
send_buffer_bytes receive_buffer_bytes tcp_rmem tcp_wmem default_qdisc initial_window min_rto_ns \
tcp_retries2 tcp_user_timeout_ns tcp_keep_alive_ns tcp_mtu_probing tcp_recovery quic_idle_timeout_ns quic_keep_alive_ns \
quic_mtu_discovery quic_packet_threshold quic_time_threshold quic_stream_window_bytes \
quic_connection_window_bytes http2_stream_window_bytes http2_connection_window_bytes dscp sample_tcp_ns clock kernel emulator tick_phase
budget: delay_error_p99_ns starvation probe_starvation exchange_delay_ns exchange_delay_share
mtu: link_mtu_bytes mtu_black_hole
loss: loss loss_burst loss_bad_ns loss_good_ns loss_enter loss_leave loss_in_bad loss_in_good loss_p13 loss_p31 loss_p32 \
loss_p23 loss_p14 lose lose_every loss_sequence bit_error_rate
duplicate: duplicate
corrupt: corrupt
background: background_rate_bps background_arrivals background_size_bytes background_flows background_on_ns background_off_ns \
background_trace background_once background_ecn
link: rate_bps queue count link_overhead_bytes link_mpu_bytes link_cells burst_bytes peak_rate_bps discipline queue_marks \
queue_target_ns queue_interval_ns queue_flows queue_quantum_bytes queue_update_ns queue_alpha queue_beta pie_burst_ns \
dualpi2_coupling dualpi2_step_ns cake_tins cake_isolation red_min_bytes red_max_bytes red_probability red_weight
slots: grant_period_ns grant_bytes grant_queue
light_deliveries: light_deliveries
deliveries: delivery_trace delivery_queue delivery_once
delay: delay_ns jitter_ns jitter_distribution jitter_values jitter_correlation reorder reorder_share reorder_gap
echo: transport size_bytes messages mode rate_per_s connection stream direction payload resumption polling connections \
timeout_ns client server
transfer: transport size_bytes duration_ns direction count payload polling connections block_bytes probe_rate_per_s timeout_ns client server
connect: transport count resumption polling connections timeout_ns client server
multiplex: transport streams size_bytes messages rate_per_s payload polling timeout_ns client server
page: transport count html_bytes scripts_bytes scripts images_bytes images request_bytes connections timeout_ns client server
program: client server port resolver timeout_ns";
    let found: Vec<String> =
        groups(&catalogue).iter().map(|(name, keys)| format!("{name}: {}", names(keys, "name").join(" "))).collect();
    assert_eq!(found.join("\n"), expected);
    let transports = "tcp udp tls websocket wss socketio-websocket socketio-webtransport quic quic-datagram webtransport \
                      webtransport-datagram http1 https1 h2c http2 http3";
    assert_eq!(names(list(&catalogue, "transports"), "name").join(" "), transports);
    let events: Vec<_> = catalogue["events"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(events, ["started", "ready", "progress", "measured", "finished", "error", "checked", "refused"]);
    assert_eq!(catalogue["schema"], "crosswind.catalogue/1");
}

#[test]
fn keys_have_the_names_that_studies_know() {
    let catalogue = catalogue();
    let page = &list(&catalogue, "workloads")[4];
    assert_eq!(
        names(list(page, "keys"), "study").join(" "),
        "transport count html_size scripts_size scripts images_size images request_size connections timeout client server"
    );
    let echo = &list(&catalogue, "workloads")[0];
    assert!(names(list(echo, "keys"), "study").join(" ").starts_with("transport size messages mode rate connection"));
}

#[test]
fn everything_says_what_it_is() {
    let catalogue = catalogue();
    for (group, keys) in groups(&catalogue) {
        for key in keys {
            assert!(!key["help"].as_str().unwrap().is_empty(), "{group}.{} has no help", key["name"]);
            let known = !key["default"].is_null() || !key["default_help"].is_null() || key["required"] == true;
            let optional = "size_bytes duration_ns rate_per_s probe_rate_per_s rate_bps server port resolver loss_bad_ns loss_enter loss_p13 \
                            lose lose_every loss_sequence bit_error_rate jitter_values";
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

/// A cell of the kind `workload` over `transport`, that sets nothing else but `more`.
fn read(kind: &str, transport: Option<&Value>, more: &Map<String, Value>) -> Result<Cell, String> {
    let mut workload = json!({"kind": kind});
    if let Some(transport) = transport {
        workload["transport"] = transport.clone();
    }
    workload.as_object_mut().unwrap().extend(more.clone());
    Cell::from_value(json!({"schema": "crosswind.cell/1", "workload": workload})).map_err(|error| error.message)
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
