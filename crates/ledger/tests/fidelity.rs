//! The fidelity report, as the cell protocol writes it, and its verdicts in words.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_ledger::{Budget, Cpus, FidelityReport, Starvation, TimeReport};
use serde_json::json;

fn report(p99: u64, wait_ns: u64) -> FidelityReport {
    let delay_error = TimeReport { n: 1000, p50: 9_000, p99, max: 2 * p99 };
    let starvation = Starvation { run_ns: 900, wait_ns, elapsed_ns: 900 + wait_ns };
    let cpus = Cpus { emulator: vec![1], hosts: vec![0] };
    FidelityReport::new(delay_error, starvation, true, false, cpus, Budget::default())
}

#[test]
fn it_is_written_as_the_protocol_says() {
    assert_eq!(
        serde_json::to_value(report(41_000, 0)).unwrap(),
        json!({
            "delay_error_ns": {"n": 1000, "p50": 9000, "p99": 41000, "max": 82000},
            "starvation": {"run_ns": 900, "wait_ns": 0, "elapsed_ns": 900, "fraction": 0.0},
            "realtime": true, "memory_locked": false, "cpus": {"emulator": [1], "hosts": [0]},
            "budget": {"delay_error_p99_ns": 1_000_000, "starvation": 0.05},
            "within_budget": true,
        })
    );
}

#[test]
fn a_budget_is_kept_up_to_and_including_its_figures() {
    assert!(report(1_000_000, 47).within_budget);
    assert!(!report(1_000_001, 0).within_budget);
}

#[test]
fn every_miss_is_told_with_its_figures() {
    let report = report(12_345_678, 100);
    assert!(!report.within_budget);
    assert_eq!(
        report.reasons(),
        [
            "packets left the path late: the 99th percentile of the delay error is 12.3 ms, the budget 1.0 ms",
            "the emulator waited for a CPU for 10.00 % of its time, the budget is 5.00 %",
        ]
    );
}

#[test]
fn a_path_without_packets_is_within_budget() {
    let nothing = FidelityReport::new(
        TimeReport::default(),
        Starvation::default(),
        false,
        false,
        Cpus::default(),
        Budget::new(0, 0.0).unwrap(),
    );
    assert!(nothing.within_budget);
}

#[test]
fn a_budget_in_a_cell_has_defaults_and_is_checked() {
    let parse = |text: &str| serde_json::from_str::<Budget>(text).map_err(|error| error.to_string());
    assert_eq!(parse("{}"), Ok(Budget::default()));
    assert_eq!(parse(r#"{"starvation": 1}"#), Ok(Budget { starvation: 1.0, ..Budget::default() }));
    assert_eq!(
        serde_json::to_value(Budget::default()).unwrap(),
        json!({"delay_error_p99_ns": 1_000_000, "starvation": 0.05})
    );
    for (bad, why) in [
        (r#"{"starvation": 1.5}"#, "starvation 1.5 is not a fraction between 0 and 1"),
        (r#"{"starvation": -0.1}"#, "starvation -0.1 is not a fraction"),
        (r#"{"delay_error_p99_ns": -1}"#, "invalid value"),
        (r#"{"delay": 1}"#, "unknown field `delay`"),
    ] {
        let error = parse(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
}
