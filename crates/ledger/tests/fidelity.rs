//! The fidelity report, as in the cell protocol, and its reasons.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_ledger::{Budget, Cpus, ExchangeDelay, FidelityReport, HostStarvation, Observed, Starvation, TimeReport};
use serde_json::{Value, json};

fn waited(wait_ns: u64) -> Starvation {
    Starvation { run_ns: 900, wait_ns, elapsed_ns: 900 + wait_ns }
}

fn observed(p99: u64, wait_ns: u64) -> Observed {
    Observed {
        delay_error_ns: TimeReport { n: 1000, p50: 9_000, p99, max: 2 * p99 },
        starvation: Some(waited(wait_ns)),
        probe_starvation: Some(HostStarvation::default()),
        realtime: true,
        cpus: Cpus { emulator: vec![1], hosts: vec![0] },
        ..Observed::default()
    }
}

fn report(observed: Observed) -> FidelityReport {
    FidelityReport::new(observed, Budget::default())
}

#[test]
fn a_report_is_written_as_the_protocol_says() {
    assert_eq!(
        serde_json::to_value(report(observed(41_000, 0))).unwrap(),
        json!({
            "delay_error_ns": {"n": 1000, "p50": 9000, "p99": 41000, "max": 82000},
            "starvation": {"run_ns": 900, "wait_ns": 0, "elapsed_ns": 900, "fraction": 0.0},
            "probe_starvation": {
                "client": {"run_ns": 0, "wait_ns": 0, "elapsed_ns": 0, "fraction": 0.0},
                "server": {"run_ns": 0, "wait_ns": 0, "elapsed_ns": 0, "fraction": 0.0},
            },
            "exchange_delay": null,
            "held_ns": 0, "kernel_drops": 0,
            "realtime": true, "in_kernel": false, "memory_locked": false, "cpus": {"emulator": [1], "hosts": [0]},
            "budget": {
                "delay_error_p99_ns": 1_000_000, "starvation": 0.2, "probe_starvation": 0.4,
                "exchange_delay_ns": 20_000, "exchange_delay_share": 0.02,
            },
            "within_budget": true,
        })
    );
}

#[test]
fn a_figure_equal_to_its_budget_is_within_it() {
    assert!(report(observed(1_000_000, 225)).within_budget);
    assert!(!report(observed(1_000_001, 0)).within_budget);
}

#[test]
fn a_wait_that_began_before_the_thread_was_observed_is_all_of_its_time() {
    let thread = Starvation { run_ns: 0, wait_ns: 110, elapsed_ns: 100 };
    let observed = |p99, wait_ns| Observed { starvation: Some(thread), ..observed(p99, wait_ns) };
    assert_eq!(
        report(observed(0, 0)).reasons(),
        ["the emulator waited for a CPU for 100.00 % of its time, the budget is 20.00 %"]
    );
    let all_of_it = Budget { starvation: 1.0, ..Budget::default() };
    assert!(FidelityReport::new(observed(0, 0), all_of_it).within_budget);
}

#[test]
fn every_figure_beyond_the_budget_is_reported() {
    let report = report(Observed {
        probe_starvation: Some(HostStarvation { client: waited(100), server: waited(900) }),
        kernel_drops: 3,
        ..observed(12_345_678, 600)
    });
    assert!(!report.within_budget);
    assert_eq!(
        report.reasons(),
        [
            "packets left the path late: the 99th percentile of the delay error is 12.3 ms, the budget 1.0 ms",
            "the emulator waited for a CPU for 40.00 % of its time, the budget is 20.00 %",
            "a thread of the server waited for a CPU for 50.00 % of its time, the budget is 40.00 %",
            "the hosts' devices dropped 3 packets that the path was not asked to drop",
        ]
    );
}

fn delayed(waited_ns: u64, median_ns: u64) -> FidelityReport {
    let exchange_delay = ExchangeDelay::new(100, Some(median_ns), 100 * waited_ns, 200, 200 * 1_000);
    report(Observed { exchange_delay, ..observed(0, 0) })
}

#[test]
fn a_mean_exchange_may_be_longer_by_20_us_or_by_2_percent_of_the_median_whichever_is_more() {
    // Packets are 1 us late each: 2 us per round trip.
    assert!(delayed(18_000, 80_000).within_budget);
    assert_eq!(
        delayed(30_000, 80_000).reasons(),
        ["CPU contention added 32.0 µs to the mean exchange, the budget is 20.0 µs"]
    );
    assert!(delayed(798_000, 40_000_000).within_budget);
    assert_eq!(
        delayed(1_998_000, 40_000_000).reasons(),
        ["CPU contention added 2.0 ms to the mean exchange, the budget is 800.0 µs"]
    );
}

#[test]
fn without_exchanges_there_is_nothing_to_delay() {
    assert_eq!(ExchangeDelay::new(0, None, 5, 0, 0), None);
    assert_eq!(ExchangeDelay::new(3, None, 5, 0, 0), None, "none of them succeeded");
}

#[test]
fn a_path_without_packets_is_within_budget() {
    let nothing = FidelityReport::new(
        Observed::default(),
        Budget {
            delay_error_p99_ns: 0,
            starvation: 0.0,
            probe_starvation: 0.0,
            exchange_delay_ns: 0,
            exchange_delay_share: 0.0,
        },
    );
    assert!(nothing.within_budget);
}

#[test]
fn a_budget_in_a_cell_has_defaults_and_is_checked() {
    let parse = |budget: Value| Budget::from_object(budget.as_object().unwrap()).map_err(|error| error.to_string());
    assert_eq!(parse(json!({})), Ok(Budget::default()));
    assert_eq!(parse(json!({"starvation": 1})), Ok(Budget { starvation: 1.0, ..Budget::default() }));
    assert_eq!(parse(json!({"probe_starvation": 0})), Ok(Budget { probe_starvation: 0.0, ..Budget::default() }));
    for (bad, why) in [
        (json!({"starvation": 1.5}), "starvation 1.5 is not between 0 and 1"),
        (json!({"starvation": -0.1}), "starvation -0.1 is not between 0 and 1"),
        (json!({"probe_starvation": 2}), "probe_starvation 2 is not between 0 and 1"),
        (json!({"delay_error_p99_ns": -1}), "delay_error_p99_ns -1 is not between 1000 and 86400000000000"),
        (json!({"delay": 1}), "delay is not a known key"),
    ] {
        assert_eq!(parse(bad), Err(why.to_owned()));
    }
}

#[test]
fn a_budget_is_described_and_never_varies_within_a_study() {
    let keys = &Budget::describe().keys;
    let studies: Vec<_> = keys.iter().map(|key| (key.study.as_str(), key.default.clone(), key.varies)).collect();
    assert_eq!(
        studies,
        [
            ("delay_error_p99", json!(1_000_000), false),
            ("starvation", json!(0.2), false),
            ("probe_starvation", json!(0.4), false),
            ("exchange_delay", json!(20_000), false),
            ("exchange_delay_share", json!(0.02), false),
        ]
    );
}
