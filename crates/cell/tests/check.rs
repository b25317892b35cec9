//! Many cells are checked in one go, each with an answer of its own.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_cell::{ErrorKind, check_cells};
use serde_json::{Value, json};

/// The answers to `text`, and whether all cells were accepted.
fn answers(text: &str) -> (Vec<Value>, bool) {
    let mut output = Vec::new();
    let all_accepted = check_cells(text, &mut output).unwrap();
    let output = String::from_utf8(output).unwrap();
    (output.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), all_accepted)
}

fn cell(workload: &Value) -> Value {
    json!({"schema": "crosswind.cell/1", "workload": workload})
}

fn demand_of(cell: &Value) -> Value {
    let (answers, _) = answers(&cell.to_string());
    assert_eq!(answers[0]["event"], "checked", "{}", answers[0]);
    answers[0]["demand"].clone()
}

fn traffic_of(workload: &Value) -> Value {
    demand_of(&cell(workload))["traffic"].clone()
}

#[test]
fn every_cell_has_its_answer_in_order() {
    let good = cell(&json!({"kind": "echo", "transport": "tcp"}));
    let bad = cell(&json!({"kind": "echo", "transport": "http1", "connection": "new", "resumption": "session"}));
    let (answers, all_accepted) = answers(&format!("{good}\n{bad}\n17\n{good}\n"));
    assert!(!all_accepted);
    let outline: Vec<_> = answers.iter().map(|answer| (answer["event"].clone(), answer["index"].clone())).collect();
    let expected = ["checked", "refused", "refused", "checked"].into_iter().zip(0..);
    assert_eq!(outline, expected.map(|(event, index)| (json!(event), json!(index))).collect::<Vec<_>>());
    assert_eq!(
        (&answers[1]["kind"], &answers[1]["key"], &answers[1]["problem"]),
        (&json!("bad_cell"), &json!("workload.resumption"), &json!("is set, and http1 has no sessions"))
    );
    assert!(answers[1]["hint"].as_str().unwrap().starts_with("transports that can: tls, "));
    assert_eq!(answers[2]["key"], Value::Null);
}

#[test]
fn a_cell_that_was_filled_in_is_accepted_again_and_stays_the_same() {
    let (first, all_accepted) = answers(&cell(&json!({"kind": "page", "transport": "http3"})).to_string());
    assert!(all_accepted);
    let (again, _) = answers(&first[0]["cell"].to_string());
    assert_eq!(again, first);
}

#[test]
fn one_cell_may_take_several_lines() {
    let text = serde_json::to_string_pretty(&cell(&json!({"kind": "connect", "transport": "tcp"}))).unwrap();
    assert!(text.lines().count() > 1);
    assert_eq!(answers(&format!("{text}\n{text}")).0.len(), 2);
}

#[test]
fn what_is_no_json_is_refused_and_ends_the_answers() {
    let good = cell(&json!({"kind": "echo", "transport": "tcp"}));
    let (answers, all_accepted) = answers(&format!("{good}\n{{\n{good}"));
    assert_eq!((answers.len(), all_accepted), (2, false));
    assert_eq!((&answers[1]["event"], &answers[1]["key"]), (&json!("refused"), &Value::Null));
}

#[test]
fn no_cell_at_all_is_an_error() {
    let error = check_cells(" \n", &mut Vec::new()).unwrap_err();
    assert_eq!((error.kind, error.exit_status()), (ErrorKind::BadCell, 2));
}

#[test]
fn a_value_out_of_range_is_refused_with_the_range_and_a_word_with_the_choices() {
    let refused = |workload: Value| {
        let (answers, _) = answers(&cell(&workload).to_string());
        let Value::Object(answer) = &answers[0] else { panic!("{answers:?}") };
        ["code", "minimum", "maximum", "choices"].map(|key| answer.get(key).cloned().unwrap_or_default())
    };
    let size = |bytes: Value| json!({"kind": "transfer", "transport": "tcp", "size_bytes": bytes});
    let [largest, smallest] = [json!(1_u64 << 40), json!(1)];
    assert_eq!(refused(size(json!(0))), [json!("too_small"), smallest.clone(), largest.clone(), Value::Null]);
    assert_eq!(refused(size(json!(1e99))), [json!("too_large"), smallest, largest, Value::Null]);
    let [code, _, _, choices] = refused(json!({"kind": "echo", "transport": "smoke"}));
    assert_eq!((code, &choices[0]), (json!("unknown_choice"), &json!("tcp")));
    assert_eq!(refused(json!({"kind": "transfer"}))[0], json!("missing"));
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_refused() {
    let mut cell = cell(&json!({"kind": "echo", "transport": "tcp"}));
    cell["host"] = json!({"congestion_control": "nonesuch"});
    let (answers, _) = answers(&cell.to_string());
    assert_eq!(
        (&answers[0]["event"], &answers[0]["kind"], &answers[0]["key"]),
        (&json!("refused"), &json!("unsupported"), &json!("host.congestion_control"))
    );
}

#[test]
fn the_demand_of_a_cell_says_what_its_path_does() {
    let mut cell = cell(&json!({"kind": "echo", "transport": "socketio-websocket", "polling": true}));
    cell["path"] = json!({
        "forward": {"delay_ns": 5_000_000, "loss": 0.25, "rate_bps": 1_000_000, "count": "ethernet"},
        "reverse": {"delay_ns": 7},
    });
    let demand = demand_of(&cell);
    assert_eq!(
        demand["forward"],
        json!({"delay_ns": 5_000_000, "loss": 0.25, "loss_after_loss": 0.25, "rate_bps": 1_000_000, "frame_bytes": 38, "loss_memory_ns": null,
               "queue": {"packets": 1000}, "mtu_bytes": null, "random_delay": false, "reorders": false, "manages_queue": false,
               "bursts": false, "changes": false, "outage_ns": 0})
    );
    assert_eq!(
        demand["reverse"],
        json!({"delay_ns": 7, "loss": 0.0, "loss_after_loss": 0.0, "rate_bps": null, "frame_bytes": 0, "loss_memory_ns": null,
               "queue": null, "mtu_bytes": null, "random_delay": false, "reorders": false, "manages_queue": false,
               "bursts": false, "changes": false, "outage_ns": 0})
    );
    assert_eq!((&demand["polling"], &demand["early_data"]), (&json!(true), &json!(false)));
    assert_eq!(demand["timeout_ns"], 60_000_000_000_u64);
}

#[test]
fn a_black_hole_in_which_something_vanishes_is_foreseen() {
    let warned = |workload: Value, path: Value, host: Value| {
        let mut cell = cell(&workload);
        (cell["path"], cell["host"]) = (path, host);
        let (answers, _) = answers(&cell.to_string());
        let warnings = answers[0]["warnings"].as_array().unwrap();
        warnings.iter().map(|warning| warning["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let hole = |mtu: u32| json!({"forward": {"link_mtu_bytes": mtu, "mtu_black_hole": true}});
    let upload = || json!({"kind": "transfer", "transport": "tcp", "size_bytes": 5000, "direction": "upload"});
    let found = warned(upload(), hole(1400), json!({}));
    assert!(
        found.len() == 1 && found[0].starts_with("packets over 1400 bytes from client to server vanish"),
        "{found:?}"
    );
    // ICMP tells; TCP probes; the hosts send no larger ones; nothing large goes that way; QUIC probes by itself.
    let with_icmp = json!({"forward": {"link_mtu_bytes": 1400}});
    assert!(warned(upload(), with_icmp, json!({})).is_empty());
    assert!(warned(upload(), hole(1400), json!({"tcp_mtu_probing": "black-hole"})).is_empty());
    assert!(warned(upload(), hole(1500), json!({})).is_empty());
    let download = json!({"kind": "transfer", "transport": "tcp", "size_bytes": 5000, "direction": "download"});
    assert!(warned(download, hole(1400), json!({})).is_empty());
    let quic = json!({"kind": "transfer", "transport": "quic", "size_bytes": 5000, "direction": "upload"});
    assert!(warned(quic, hole(1400), json!({})).is_empty());
    // 20 bytes of IPv4 and 32 of TCP, or 8 of UDP.
    let echo = |transport: &str, size: u64| json!({"kind": "echo", "transport": transport, "size_bytes": size});
    assert!(warned(echo("tcp", 1348), hole(1400), json!({})).is_empty());
    assert_eq!(warned(echo("tcp", 1349), hole(1400), json!({})).len(), 1);
    assert!(warned(echo("udp", 1372), hole(1400), json!({})).is_empty());
    assert!(warned(echo("udp", 1373), hole(1400), json!({}))[0].ends_with("larger messages are lost, each of them"));
    // Flows beside the workload: each active one for itself.
    let beside = |count: u64| {
        let call = json!({"name": "call", "count": 1, "workload": echo("udp", 1400)});
        let mut cell = cell(&echo("tcp", 1));
        (cell["path"], cell["flows"]) =
            (hole(1400), json!([{"name": "up", "count": count, "workload": upload()}, call]));
        let (answers, _) = answers(&cell.to_string());
        answers[0]["warnings"].as_array().unwrap().iter().map(|warning| warning["text"].to_string()).collect::<Vec<_>>()
    };
    let texts = beside(2);
    assert_eq!((texts.len(), beside(0).len()), (2, 1), "{texts:?}");
    assert!(texts[0].contains("TCP of the flow up, which") && texts[1].contains("messages of the flow call are lost"));
    // A tunnel for a time, on the way back.
    let tunnel = json!({"reverse": {"mtu_black_hole": true}, "changes": [{"start_ns": 9, "for_ns": 9, "reverse": {"link_mtu_bytes": 1280}}]});
    let found = warned(echo("tcp", 1400), tunnel, json!({}));
    assert!(
        found.len() == 1 && found[0].starts_with("packets over 1280 bytes from server to client vanish"),
        "{found:?}"
    );
}

#[test]
fn the_demand_of_a_cell_says_what_its_workload_sends() {
    assert_eq!(
        traffic_of(&json!({"kind": "echo", "transport": "tcp", "size_bytes": 900, "direction": "upload",
                           "connection": "new", "connections": 3})),
        json!({"pattern": "exchanges", "count": 100, "connections": 3, "request_bytes": 900, "reply_bytes": 1,
               "new_connections": true, "rate_per_s": null})
    );
    assert_eq!(
        traffic_of(&json!({"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 50}))["rate_per_s"],
        50.0
    );
    assert_eq!(
        traffic_of(&json!({"kind": "transfer", "transport": "quic", "size_bytes": 5, "direction": "download"})),
        json!({"pattern": "transfers", "count": 1, "connections": 1, "size_bytes": 5, "duration_ns": null,
               "upload": false})
    );
    assert_eq!(
        traffic_of(&json!({"kind": "connect", "transport": "tls"})),
        json!({"pattern": "handshakes", "count": 100, "connections": 1})
    );
    assert_eq!(
        traffic_of(&json!({"kind": "multiplex", "transport": "http1"})),
        json!({"pattern": "streams", "messages": 100, "streams": 4, "connections": 4, "size_bytes": 200,
               "rate_per_s": 20.0})
    );
    assert_eq!(traffic_of(&json!({"kind": "multiplex", "transport": "quic"}))["connections"], 1);
    assert_eq!(
        traffic_of(&json!({"kind": "page", "transport": "http1"})),
        json!({"pattern": "pages", "count": 10, "connections": 6, "html_bytes": 36_000, "objects_bytes": 600_000,
               "objects": 20, "request_bytes": 400})
    );
}

#[test]
fn early_data_is_part_of_the_demand_and_nothing_is_known_of_a_program() {
    let early = cell(&json!({"kind": "echo", "transport": "quic", "connection": "new", "resumption": "0-rtt"}));
    assert_eq!(demand_of(&early)["early_data"], true);
    let program = demand_of(&cell(&json!({"kind": "program", "client": ["true"]})));
    let timeout = json!(600_000_000_000_u64);
    assert_eq!((&program["traffic"], &program["timeout_ns"]), (&json!({"pattern": "unknown"}), &timeout));
}

/// Whether nothing in a cell is left to chance.
fn is_exact(cell: &Value) -> bool {
    let (answers, _) = answers(&cell.to_string());
    answers[0]["exact"].as_bool().unwrap()
}

#[test]
fn a_cell_is_exact_when_nothing_in_it_is_left_to_chance() {
    let tcp = json!({"kind": "echo", "transport": "tcp"});
    let with = |section: &str, value: Value| {
        let mut cell = cell(&tcp);
        cell[section] = value;
        cell
    };
    assert!(is_exact(&cell(&tcp)));
    let link = json!({"delay_ns": 10_000_000, "rate_bps": 1_000_000, "queue": {"packets": 10}});
    assert!(is_exact(&with("path", json!({"forward": link, "reverse": link}))));
    assert!(!is_exact(&with("path", json!({"forward": {"loss": 0.01}}))));
    assert!(!is_exact(&with("path", json!({"reverse": {"loss": 0.01}}))));
    assert!(!is_exact(&with("host", json!({"congestion_control": "bbr", "clock": "virtual"}))));
    assert!(is_exact(&with("host", json!({"congestion_control": "reno"}))));
    assert!(is_exact(&with("host", json!({"tick_phase": "fixed", "clock": "virtual"}))));
    assert!(!is_exact(&with("host", json!({"tick_phase": "seed", "clock": "virtual"}))));
    assert!(is_exact(&with("host", json!({"random_seed": 7, "clock": "virtual", "congestion_control": "bbr"}))));
    assert!(!is_exact(&cell(&json!({"kind": "program", "client": ["true"]}))));
}

#[test]
fn a_cell_is_exact_with_a_transport_whose_packets_have_the_same_sizes_with_every_seed() {
    let exact: Vec<_> = crosswind_transport::all()
        .filter(|transport| is_exact(&cell(&json!({"kind": "echo", "transport": transport.name()}))))
        .map(|transport| transport.name())
        .collect();
    assert_eq!(exact.join(" "), "tcp udp tls websocket wss socketio-websocket http1 https1 h2c http2");
}

#[test]
fn a_cell_with_peers_is_filled_in_and_never_exact() {
    let peer = |name: &str| json!({"name": name, "command": ["./program", "{address}"]});
    let with = |ends: &Value| {
        let mut workload = json!({"kind": "echo", "transport": "tcp"});
        workload.as_object_mut().unwrap().extend(ends.as_object().unwrap().clone());
        answers(&cell(&workload).to_string()).0.remove(0)
    };
    let native = with(&json!({"client": null}));
    assert_eq!((&native["exact"], native["cell"]["workload"].get("client")), (&json!(true), None));
    let peers = with(&json!({"client": peer("a"), "server": peer("b")}));
    assert_eq!((&peers["event"], &peers["exact"]), (&json!("checked"), &json!(false)));
    let client = json!({"name": "a", "command": ["./program", "{address}"], "ready": null});
    assert_eq!(peers["cell"]["workload"]["client"], client);
    assert_eq!(with(&json!({"server": peer("b")}))["exact"], json!(false));
}

#[test]
fn peers_that_cannot_be_are_refused_with_their_key() {
    let peer = json!({"name": "a", "command": ["./program"]});
    let ready = json!({"name": "a", "command": ["./program"], "ready": "tcp:7"});
    let cases = [
        (
            json!({"kind": "echo", "transport": "tcp", "client": ready}),
            "workload.client.ready is set, and only a server",
        ),
        (
            json!({"kind": "echo", "transport": "tcp", "client": {"name": "a", "command": []}}),
            "workload.client.command is an",
        ),
        (json!({"kind": "program", "client": peer}), "workload.client {"),
        (
            json!({"kind": "transfer", "transport": "tcp", "size_bytes": 9, "server": peer}),
            "workload.server is a peer, and the client is Crosswind's own",
        ),
        (json!({"kind": "echo", "transport": "tcp", "cliant": peer}), "workload.cliant is not a known key"),
    ];
    for (workload, message) in cases {
        let (answers, _) = answers(&cell(&workload).to_string());
        assert_eq!(answers[0]["event"], "refused");
        let sentence = format!("{} {}", answers[0]["key"].as_str().unwrap(), answers[0]["problem"].as_str().unwrap());
        assert!(sentence.starts_with(message), "{sentence}");
    }
    let both = json!({"kind": "transfer", "transport": "tcp", "size_bytes": 9, "server": peer, "client": peer});
    assert_eq!(answers(&cell(&both).to_string()).0[0]["event"], "checked");
}

#[test]
fn flows_that_cannot_run_at_one_time_are_foreseen() {
    let said = |stop_ns: Option<u64>| {
        let transfer = json!({"kind": "transfer", "transport": "tcp"});
        let first = json!({"name": "first", "stop_ns": stop_ns, "workload": transfer});
        let second = json!({"name": "second", "start_ns": 2_000_000_000_u64, "workload": transfer});
        let mut cell = cell(&json!({"kind": "echo", "transport": "tcp"}));
        cell["flows"] = json!([first, second]);
        let (answers, _) = answers(&cell.to_string());
        answers[0]["warnings"].as_array().unwrap().iter().map(|warning| warning["text"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        said(Some(2_000_000_000)),
        ["\"the flow first ends before the flow second begins: nothing is said of what they share\""]
    );
    assert!(said(Some(2_000_000_001)).is_empty() && said(None).is_empty());
}
