//! Reading cells: defaults, and refusals by key and message.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests, where a failure is a failed test

use crosswind_cell::{Cell, CellError, ErrorKind};
use serde_json::{Value, json};

const ECHO: &str = r#"{"kind": "echo", "transport": "tcp"}"#;

/// A cell with these sections.
fn read(sections: &Value) -> Result<Cell, CellError> {
    let mut cell = json!({"schema": "crosswind.cell/1", "workload": serde_json::from_str::<Value>(ECHO).unwrap()});
    for (name, section) in sections.as_object().unwrap() {
        cell[name] = section.clone();
    }
    Cell::from_value(cell)
}

fn filled_in(sections: &Value) -> Value {
    serde_json::to_value(read(sections).unwrap()).unwrap()
}

/// The faulty key, and the whole message.
fn refused(sections: &Value) -> (String, String) {
    let error = read(sections).expect_err("the cell was accepted");
    assert_eq!((error.kind, error.exit_status()), (ErrorKind::BadCell, 2));
    assert!(error.hint.as_ref().is_some_and(|hint| !hint.is_empty()), "{error} has no hint");
    let message = error.to_string();
    (error.key.expect("no key is to blame"), message)
}

fn assert_refused(sections: &Value, key: &str, words: &str) {
    let (blamed, message) = refused(sections);
    assert_eq!(blamed, key, "{message}");
    assert!(message.starts_with(key) && message.contains(words), "{message}");
}

fn with_workload(workload: &Value) -> Value {
    json!({"workload": workload})
}

#[test]
fn a_client_has_all_of_its_callers_streams_or_none() {
    assert!(read(&json!({"output": {"client_input": 3, "client_output": 4, "client_errors": 5}})).is_ok());
    assert_refused(
        &json!({"output": {"client_input": 3, "client_errors": 5}}),
        "output.client_input",
        "not all are there",
    );
    let standard = json!({"output": {"client_input": 0, "client_output": 4, "client_errors": 5}});
    assert_refused(&standard, "output.client_input", "is not between 3 and 65535");
}

#[test]
fn defaults_are_those_of_the_protocol() {
    let cell = filled_in(&json!({}));
    assert_eq!(
        cell,
        json!({
            "schema": "crosswind.cell/1",
            "id": "",
            "seed": 1,
            "path": {
                "backend": "tun",
                "family": "ipv4",
                "mtu_bytes": 1500,
                "forward": {"mtu_black_hole": false, "loss": 0.0, "duplicate": 0.0, "corrupt": 0.0, "rate_bps": null,
                            "queue": null, "count": "ip", "discipline": "fifo", "delivery_once": false, "delay_ns": 0, "jitter_ns": 0, "jitter_correlation": 0.0,
                            "reorder": false},
                "reverse": {"mtu_black_hole": false, "loss": 0.0, "duplicate": 0.0, "corrupt": 0.0, "rate_bps": null,
                            "queue": null, "count": "ip", "discipline": "fifo", "delivery_once": false, "delay_ns": 0, "jitter_ns": 0, "jitter_correlation": 0.0,
                            "reorder": false},
            },
            "host": {"profile": "linux", "congestion_control": "cubic", "nodelay": true, "clock": "auto"},
            "workload": {
                "kind": "echo", "transport": "tcp", "size_bytes": 1, "messages": 100, "mode": "closed",
                "rate_per_s": null, "connection": "kept", "stream": "kept", "direction": "echo", "payload": "binary",
                "resumption": "none", "polling": false, "connections": 1, "timeout_ns": 60_000_000_000_u64,
            },
            "output": {
                "directory": null, "packets": false, "spent": false, "keys": false, "capture": false, "qlog": false, "profile": false,
                "client_input": null, "client_output": null, "client_errors": null, "client_foreground": false,
                "client_whole": false,
            },
            "budget": {
                "delay_error_p99_ns": 1_000_000, "starvation": 0.2, "probe_starvation": 0.4,
                "exchange_delay_ns": 20_000, "exchange_delay_share": 0.02,
            },
            "placement": {"watch": null, "emulator_cpus": [], "host_cpus": []},
            "heartbeat_ns": 250_000_000,
            "deadline_ns": 600_000_000_000_u64,
        })
    );
}

#[test]
fn a_filled_in_cell_reads_back_the_same() {
    for workload in [
        json!({"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 12.5}),
        json!({"kind": "transfer", "transport": "quic", "duration_ns": 1_000_000}),
        json!({"kind": "connect", "transport": "wss", "resumption": "session"}),
        json!({"kind": "multiplex", "transport": "http3"}),
        json!({"kind": "page", "transport": "http1"}),
        json!({"kind": "program", "client": ["ping", "{server}"], "server": ["sleep", "1"]}),
    ] {
        let first = filled_in(&json!({
            "workload": workload,
            "path": {"forward": {"rate_bps": 1000, "loss": 0.5}},
            "placement": {"watch": 0.25},
        }));
        assert_eq!(filled_in(&first), first);
    }
}

#[test]
fn a_datagram_waits_one_second_and_four_round_trips() {
    let path = json!({"forward": {"delay_ns": 10_000_000}, "reverse": {"delay_ns": 15_000_000}});
    let timeout = |transport: &str| {
        let workload = json!({"kind": "echo", "transport": transport});
        filled_in(&json!({"path": path, "workload": workload}))["workload"]["timeout_ns"].as_u64()
    };
    assert_eq!(timeout("udp"), Some(1_100_000_000));
    assert_eq!(timeout("quic-datagram"), Some(1_100_000_000));
    assert_eq!(timeout("quic"), Some(60_000_000_000));
}

#[test]
fn a_page_opens_six_connections_where_each_carries_one_request_at_a_time() {
    let connections = |transport: &str| {
        filled_in(&with_workload(&json!({"kind": "page", "transport": transport})))["workload"]["connections"].as_u64()
    };
    assert_eq!((connections("http1"), connections("https1")), (Some(6), Some(6)));
    assert_eq!((connections("http2"), connections("http3"), connections("h2c")), (Some(1), Some(1), Some(1)));
}

#[test]
fn the_machines_of_a_network_stay_as_they_are() {
    let network = |path: &Value, host: &Value, workload: &Value| {
        let mut path = path.clone();
        path["backend"] = json!("network");
        json!({"path": path, "host": host, "workload": workload})
    };
    let (server, none) = (json!({"server": "192.0.2.7:9470"}), json!({}));
    let tcp = json!({"kind": "echo", "transport": "tcp"});
    assert!(read(&network(&server, &json!({"congestion_control": "reno", "send_buffer_bytes": 65536}), &tcp)).is_ok());
    assert_refused(&network(&none, &none, &tcp), "path.server", "is missing");
    assert_refused(&json!({"path": {"server": "192.0.2.7:9470"}}), "path.server", "the backend is not network");
    let lossy = json!({"server": "192.0.2.7:9470", "forward": {"loss": 0.1}});
    assert_refused(&network(&lossy, &none, &tcp), "path.backend", "takes no loss, delay, rate or queue");
    let small = json!({"server": "192.0.2.7:9470", "mtu_bytes": 1400});
    assert_refused(&network(&small, &none, &tcp), "path.mtu_bytes", "not to be changed");
    for host in [json!({"sack": false}), json!({"profile": "freebsd-8"}), json!({"clock": "virtual"})] {
        assert_refused(&network(&server, &host, &tcp), "host", "changes more than sockets");
    }
    let peer = json!({"kind": "echo", "transport": "tcp", "client": {"name": "other", "command": ["other"]}});
    assert_refused(&network(&server, &none, &peer), "workload.client", "both ends of a network are Crosswind's own");
    let large =
        |transport| json!({"kind": "echo", "transport": transport, "direction": "download", "size_bytes": 1000});
    assert_refused(&network(&server, &none, &large("udp")), "workload.direction", "larger than the requests");
    assert!(read(&network(&server, &none, &large("quic-datagram"))).is_ok());
}

#[test]
fn impossible_paths_are_refused_by_key() {
    let forward = |settings: Value| json!({"path": {"forward": settings}});
    assert_refused(&forward(json!({"loss": 1.01})), "path.forward.loss", "1.01 is not between 0 and 1");
    assert_refused(&forward(json!({"rate_bps": 0})), "path.forward.rate_bps", "lets nothing pass");
    assert_refused(&forward(json!({"delay_ns": -1})), "path.forward.delay_ns", "-1");
    assert_refused(&forward(json!({"queue": {"packets": 5}})), "path.forward.queue", "unlimited link has no queue");
    assert_refused(&forward(json!({"los": 0.1})), "path.forward.los", "is not a known key");
    let queue = json!({"rate_bps": 1000, "queue": {"bytes": 1_000_000_001}});
    assert_refused(&forward(queue), "path.forward.queue", "1000000001 is more than 1000000000");
    assert_refused(&json!({"path": {"reverse": {"loss": -1}}}), "path.reverse.loss", "-1");
    assert_refused(&json!({"path": {"reverse": 5}}), "path.reverse", "is no JSON object");
    assert_refused(&json!({"path": []}), "path", "is no JSON object");
    assert_refused(&json!({"path": {"family": "ipv5"}}), "path.family", "ipv5 is not one of ipv4, ipv6");
    assert_refused(&json!({"path": {"mtu_bytes": 575}}), "path.mtu_bytes", "575 is not between 576 and 65535");
    let mtu = json!({"path": {"mtu_bytes": 1279, "family": "ipv6"}});
    assert_refused(&mtu, "path.mtu_bytes", "1279 is not between 1280 and 65535");
    let quic =
        |mtu: u32| json!({"path": {"mtu_bytes": mtu}, "workload": {"kind": "echo", "transport": "webtransport"}});
    assert_refused(&quic(1227), "path.mtu_bytes", "1227 is too small for webtransport");
    assert_eq!(filled_in(&quic(1228))["path"]["mtu_bytes"], 1228);
    let by_netem = |path: Value| {
        let mut path = path;
        path["backend"] = json!("netem");
        json!({"path": path})
    };
    assert!(read(&by_netem(json!({"forward": {"loss": 0.1, "rate_bps": 8000, "delay_ns": 5}}))).is_ok());
    let beyond = json!({"forward": {"lose": [7]}, "reverse": {"bit_error_rate": 1e-6}});
    let refused =
        "netem cannot do forward.lose (it loses packets by chance alone), reverse.bit_error_rate (its losses do not";
    assert_refused(&by_netem(beyond), "path.backend", refused);
    let mut recorded = by_netem(json!({}));
    recorded["output"] = json!({"packets": true, "directory": "/tmp"});
    assert_refused(&recorded, "path.backend", "has no emulator to record packets");
    let direct = json!({"path": {"backend": "direct", "forward": {"loss": 0.1}}});
    assert_refused(&direct, "path.backend", "takes no loss, delay, rate or queue");
}

#[test]
fn where_the_emulator_runs_is_to_be_chosen_in_virtual_time_alone() {
    let cell = |clock: &str| json!({"host": {"clock": clock, "emulator": "kernel"}});
    assert!(read(&cell("virtual")).is_ok());
    assert_refused(
        &cell("real"),
        "host.emulator",
        "on the machine's clock the emulator is always a thread of the cell",
    );
    let mut netem = cell("virtual");
    netem["path"] = json!({"backend": "netem"});
    assert_refused(&netem, "host.emulator", "the backend netem has no emulator");
}

#[test]
fn access_links_are_the_emulators_and_not_too_many() {
    let flow = |count: u64| {
        let upload = json!({"kind": "transfer", "transport": "tcp"});
        json!({"name": "far", "count": count, "access_delay_ns": 35_000_000, "access_rate_bps": 5_000_000, "workload": upload})
    };
    let cell = read(&json!({"path": {"forward": {"delay_ns": 5}}, "flows": [flow(2)]})).unwrap();
    let emulated = cell.path.emulated();
    assert_eq!((emulated.access.len(), emulated.round_trip().as_nanos()), (1, 5));
    assert_eq!(emulated.longest_round_trip().as_nanos(), 70_000_005);
    assert_eq!(emulated.access[0].reverse.mtu.link_mtu_bytes, Some(1500));
    let netem = |count| json!({"path": {"backend": "netem"}, "flows": [flow(count)]});
    assert_refused(&netem(1), "flows.0.access_delay_ns", "an access link, which only the emulator has");
    assert!(read(&netem(0)).is_ok());
    assert_refused(&json!({"flows": vec![flow(1); 17]}), "flows", "have 17 access links");
}

#[test]
fn probes_share_a_connection_of_http2_or_http3_with_the_transfer_of_a_flow() {
    let load = |transport: &str, keys: &str| {
        let keys: Value =
            serde_json::from_str(&format!(r#"{{"kind": "transfer", "probe_rate_per_s": 10, {keys}}}"#)).unwrap();
        let mut workload = keys;
        workload["transport"] = transport.into();
        workload
    };
    let flow = |workload: Value| json!({"flows": [{"name": "load", "workload": workload}]});
    for transport in ["h2c", "http2", "http3"] {
        assert!(read(&flow(load(transport, r#""direction": "download""#))).is_ok());
    }
    for transport in ["tcp", "tls", "http1", "quic"] {
        let key = "flows.0.workload.probe_rate_per_s";
        let words = format!("is set, and {transport} has no requests beside a transfer on one connection");
        assert_refused(&flow(load(transport, r#""count": 1"#)), key, &words);
    }
    let one_byte = flow(load("http2", r#""size_bytes": 1"#));
    assert_refused(&one_byte, "flows.0.workload.size_bytes", "is that of a probe");
    let alone = with_workload(&load("http2", r#""size_bytes": 1000"#));
    assert_refused(&alone, "workload.probe_rate_per_s", "the workload of a cell has no requests beside its transfers");
}

#[test]
fn flows_and_the_workload_have_at_most_2000_connections_at_one_time() {
    let flow = |count: u64| {
        let echo = json!({"kind": "echo", "transport": "tcp", "connections": 999});
        json!({"flows": [{"name": "many", "count": count, "workload": echo}]})
    };
    assert!(read(&flow(2)).is_ok() && read(&flow(0)).is_ok());
    assert_refused(&flow(3), "flows", "and the workload have 2998 connections at one time");
}

#[test]
fn impossible_sections_are_refused_by_key() {
    assert_refused(&json!({"budget": {"starvation": 2}}), "budget.starvation", "2 is not between 0 and 1");
    assert_refused(&json!({"budget": {"delay_error_p99_ns": 999}}), "budget.delay_error_p99_ns", "999 is not between");
    assert_refused(&json!({"host": {"initial_window": 0}}), "host.initial_window", "0 is not between 1 and 1000");
    assert_refused(&json!({"output": {"packets": true}}), "output.directory", "need an output.directory");
    assert_refused(&json!({"output": {"directory": "/nowhere/at/all"}}), "output.directory", "is not a directory");
    assert_refused(&json!({"output": {"packet": true}}), "output.packet", "is not a known key");
    assert_refused(&json!({"placement": {"host_cpus": [-1]}}), "placement.host_cpus[0]", "invalid value");
    assert_refused(&json!({"placement": {"watch": 2}}), "placement.watch", "is not a fraction");
    assert_refused(&json!({"deadline_ns": 0}), "deadline_ns", "0 is not between 1000000 and 86400000000000");
    assert_refused(&json!({"heartbeat_ns": 1}), "heartbeat_ns", "1 is not between");
    assert_refused(&json!({"seed": -1}), "seed", "-1");
    assert_refused(&json!({"pathh": {}}), "pathh", "is not a known key");
    assert_refused(&json!({"schema": "crosswind.cell/2"}), "schema", "crosswind.cell/2");
    assert_refused(&json!({"workload": 1}), "workload", "is no JSON object");
}

#[test]
fn workloads_are_held_to_their_keys() {
    let refuse = |workload: Value, key: &str, words: &str| {
        assert_refused(&with_workload(&workload), &format!("workload.{key}"), words);
    };
    refuse(json!({}), "kind", "is missing");
    refuse(json!({"kind": "dance"}), "kind", "\"dance\" is not known");
    refuse(json!({"kind": "echo"}), "transport", "is missing");
    refuse(json!({"kind": "echo", "transport": "smoke"}), "transport", "smoke is not one of tcp, ");
    refuse(json!({"kind": "echo", "transport": "tcp", "sizes": 5}), "sizes", "is not a known key");
    refuse(json!({"kind": "echo", "transport": "tcp", "size_bytes": 0}), "size_bytes", "0 is not between 1 and");
    refuse(
        json!({"kind": "echo", "transport": "tcp", "size_bytes": 1_u64 << 31}),
        "size_bytes",
        "is not between 1 and",
    );
    refuse(json!({"kind": "echo", "transport": "tcp", "messages": 0}), "messages", "0 is not between");
    refuse(json!({"kind": "echo", "transport": "tcp", "connections": 0}), "connections", "0 is not between 1 and 1000");
    refuse(json!({"kind": "echo", "transport": "tcp", "timeout_ns": 5}), "timeout_ns", "5 is not between");
    refuse(
        json!({"kind": "transfer", "transport": "tcp", "direction": "echo"}),
        "direction",
        "not one of upload, download",
    );
    refuse(
        json!({"kind": "multiplex", "transport": "tcp", "size_bytes": 7}),
        "size_bytes",
        "7 is not between 8 and 1000",
    );
    refuse(json!({"kind": "multiplex", "transport": "tcp", "streams": 101}), "streams", "101 is not between 1 and 100");
    refuse(json!({"kind": "program"}), "client", "is missing");
    refuse(json!({"kind": "program", "client": []}), "client", "is an empty argument list");
    refuse(json!({"kind": "program", "client": ["a"], "server": []}), "server", "is an empty argument list");
    refuse(json!({"kind": "program", "client": ["a\u{0}b"]}), "client", "no program can be given");
    for key in ["env", "client_env", "server_env"] {
        refuse(json!({"kind": "program", "client": ["a"], key: ["=b"]}), key, "\"=b\" is no variable");
    }
}

#[test]
fn what_a_transport_cannot_do_is_refused_with_those_that_can() {
    let hint = |workload: Value, key: &str, words: &str| {
        assert_refused(&with_workload(&workload), &format!("workload.{key}"), words);
        read(&with_workload(&workload)).unwrap_err().hint.unwrap()
    };
    let workload = json!({"kind": "transfer", "transport": "udp", "size_bytes": 1});
    assert!(hint(workload, "transport", "udp cannot do transfer").contains("transports that can: tcp, tls"));
    let workload = json!({"kind": "connect", "transport": "udp"});
    assert!(hint(workload, "transport", "udp cannot do connect").contains("tcp"));
    let workload = json!({"kind": "page", "transport": "tcp"});
    assert!(hint(workload, "transport", "tcp cannot do page").ends_with("http1, https1, h2c, http2, http3"));
    let workload = json!({"kind": "echo", "transport": "tcp", "payload": "text"});
    assert!(hint(workload, "payload", "is text, and tcp has only bytes").contains("websocket, wss"));
    let workload = json!({"kind": "connect", "transport": "http1", "resumption": "session"});
    assert!(hint(workload, "resumption", "is set, and http1 has no sessions").contains("https1"));
    let workload = json!({"kind": "echo", "transport": "wss", "connection": "new", "resumption": "0-rtt"});
    assert!(hint(workload, "resumption", "sends no data before its handshake is done").contains("quic"));
    let workload = json!({"kind": "echo", "transport": "socketio-webtransport", "polling": true});
    assert!(hint(workload, "polling", "has no polling").ends_with("socketio-websocket"));
    let workload = json!({"kind": "echo", "transport": "tcp", "stream": "new"});
    assert!(hint(workload, "stream", "has no streams to choose").ends_with("quic, webtransport"));
    let workload = json!({"kind": "echo", "transport": "udp", "size_bytes": 65_508});
    assert!(hint(workload, "size_bytes", "65508 is over the limit of udp: 65507 bytes").contains("tcp"));
}

#[test]
fn settings_that_exclude_each_other_are_refused() {
    let refuse = |workload: Value, key: &str, words: &str| {
        assert_refused(&with_workload(&workload), &format!("workload.{key}"), words);
    };
    let open = |more: (&str, Value)| {
        let mut workload = json!({"kind": "echo", "transport": "tcp", "mode": "open", "rate_per_s": 5});
        workload[more.0] = more.1;
        workload
    };
    refuse(json!({"kind": "echo", "transport": "tls", "resumption": "0-rtt"}), "resumption", "the connection is kept");
    refuse(json!({"kind": "echo", "transport": "tcp", "rate_per_s": 5}), "rate_per_s", "is set in a closed loop");
    refuse(json!({"kind": "echo", "transport": "tcp", "mode": "open"}), "rate_per_s", "is missing");
    refuse(open(("rate_per_s", json!(-5))), "rate_per_s", "-5 is not between");
    refuse(open(("connection", json!("new"))), "connection", "is new in an open loop");
    refuse(open(("direction", json!("upload"))), "direction", "is set in an open loop");
    refuse(json!({"kind": "transfer", "transport": "tcp"}), "size_bytes", "is missing");
    let both = json!({"kind": "transfer", "transport": "tcp", "size_bytes": 1, "duration_ns": 1_000_000});
    refuse(both, "duration_ns", "is set beside size");
    let shared = json!({"kind": "page", "transport": "http2", "connections": 6});
    refuse(shared, "connections", "is more than 1, and http2 shares one");
    let files = json!({"kind": "page", "transport": "http1", "images": 20, "images_bytes": 19});
    refuse(files, "images", "20 are more than the 19 bytes that they share");
}

#[test]
fn what_is_no_cell_is_refused() {
    for text in ["", "{", "[]", "17", "{}", "{\"schema\": \"crosswind.cell/1\"}", &"[".repeat(5000)] {
        let error = Cell::from_json(text).unwrap_err();
        assert_eq!((error.kind, error.hint.is_some()), (ErrorKind::BadCell, true), "{text:.20}");
    }
}
