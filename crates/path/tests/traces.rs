//! Traces: tables of values over time, and their effect on a path.
#![allow(clippy::unwrap_used)]

use crosswind_path::world::{Fate, World};
use crosswind_path::{PathConfig, Side, link};
use crosswind_units::{Duration, Instant, Seed};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(settings: &Value, trace: &str) -> Result<PathConfig, String> {
    let text = |_: &str| Ok(trace.to_owned());
    PathConfig::read(settings.as_object().unwrap(), &text).map_err(|error| error.to_string())
}

fn with_trace(keys: &Value, trace: &str) -> Result<PathConfig, String> {
    let mut change = json!({"trace": "a.csv"});
    change.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    read(&json!({"forward": {"queue": null}, "changes": [change]}), trace)
}

/// Arrival times of packets of 1250 bytes sent at these ms.
fn arrivals(config: &PathConfig, sent_ms: &[u64]) -> Vec<u64> {
    let mut world = World::new(config.direction(Side::Forward, Seed(1)));
    for at in sent_ms {
        world.send_at(Instant::from_nanos(at * 1_000_000), 1250);
    }
    world
        .run()
        .into_iter()
        .map(|(_, fate)| match fate {
            Fate::Delivered(at) => at.as_nanos() / 1000,
            Fate::Dropped(..) => 0,
        })
        .collect()
}

#[test]
fn a_trace_of_rates_without_a_header_is_replayed_and_begins_again() {
    // As Pensieve's: seconds and Mbit/s. 10,000 bits take 1, 2 and 10 ms; after 3 s the trace begins again.
    let config = with_trace(&json!({}), "0 10\n1.0\t5.0\n\n# a remark\n2 1 # slow\n").unwrap();
    let took: Vec<u64> = arrivals(&config, &[0, 1500, 2500, 3500, 4500])
        .iter()
        .zip([0, 1500, 2500, 3500, 4500])
        .map(|(at, sent)| at - sent * 1000)
        .collect();
    assert_eq!(took, [1000, 2000, 10_000, 1000, 2000]);
    let effect = config.effect(Side::Forward);
    assert_eq!((effect.rate.unwrap().as_bps(), effect.changes), (5_333_333, true));
}

#[test]
fn a_trace_that_is_replayed_once_stays_as_it_ends() {
    let config = with_trace(&json!({"once": true, "start_ns": 1_000_000_000}), "0,10\n1,1").unwrap();
    // Before it the link has no limit.
    assert_eq!(arrivals(&config, &[0, 1500, 2500, 90_000]), [0, 1_501_000, 2_510_000, 90_010_000]);
}

#[test]
fn columns_are_keys_of_the_path_in_the_units_of_tables() {
    let header = with_trace(&json!({}), "time,delay,loss,rate\n0,20,0,10\n1,50,1,10\n").unwrap();
    assert_eq!(arrivals(&header, &[0, 1200]), [21_000, 0]);
    let named = with_trace(&json!({"columns": ["delay"]}), "time,what\n0;20\n1;50.5\n").unwrap();
    assert_eq!(arrivals(&named, &[0, 1200]), [20_000, 1_250_500]);
    assert_eq!(named.longest_delay(Side::Forward), Duration::from_nanos(50_500_000));
    let one_way = with_trace(&json!({"columns": ["delay"], "of": "reverse"}), "0 20").unwrap();
    assert_eq!(arrivals(&one_way, &[0]), [0]);
    assert_eq!(one_way.longest_delay(Side::Reverse), Duration::from_millis(20));
}

#[test]
fn a_link_that_carries_nothing_for_a_while_goes_on_where_it_was() {
    let config = with_trace(&json!({}), "0 10\n0.0005 0\n0.1 10\n").unwrap();
    // Half the packet, then 99.5 ms without progress, then the other half; the second packet waits for all that.
    assert_eq!(arrivals(&config, &[0, 50]), [100_500, 101_500]);
}

#[test]
fn a_packet_that_finds_the_link_stopped_waits_until_the_rate_rises() {
    for link in [json!({}), json!({"burst_bytes": 3000}), json!({"discipline": "codel"}), json!({"discipline": "red"})]
    {
        let mut forward = json!({"rate_bps": 10_000_000});
        forward.as_object_mut().unwrap().extend(link.as_object().unwrap().clone());
        let stop = json!({"start_ns": 10_000_000, "for_ns": 90_000_000, "forward": {"rate_bps": 0}});
        let config = read(&json!({"forward": forward, "changes": [stop]}), "").unwrap();
        let mut world = World::new(config.direction(Side::Forward, Seed(1)));
        for at in [0, 20] {
            world.send_at(Instant::from_nanos(at * 1_000_000), 1250);
        }
        let wire = Duration::from_millis(u64::from(link.get("burst_bytes").is_none()));
        let (_, first) = world.next_fate().unwrap();
        assert_eq!(first, Fate::Delivered(Instant::ZERO + wire));
        let (packet, second) = world.next_fate().unwrap();
        assert_eq!(second, Fate::Delivered(Instant::from_nanos(100_000_000) + wire));
        assert_eq!((packet.spent.queueing, packet.spent.serialisation), (Duration::from_millis(80), wire));
    }
}

#[test]
fn a_link_that_stops_for_good_keeps_what_it_has() {
    let stop = json!({"start_ns": 500_000, "forward": {"rate_bps": 0, "queue": {"packets": 1}}});
    let config = read(&json!({"forward": {"rate_bps": 10_000_000}, "changes": [stop]}), "").unwrap();
    let mut world = World::new(config.direction(Side::Forward, Seed(1)));
    for at in [0, 1, 2] {
        world.send_at(Instant::from_nanos(at * 1_000_000), 1250);
    }
    // One is on the wire, one waits, and for the third there is no room.
    assert_eq!(world.run(), [(2, Fate::Dropped(Instant::from_nanos(2_000_000), link::QUEUE_FULL))]);
    assert_eq!(world.queued(), 2);
}

#[test]
fn what_is_no_trace_is_refused_with_its_line() {
    for (trace, message) in [
        ("", "line 1 is the last, and there is no row before it"),
        ("# nothing\n\n", "line 1 is the last, and there is no row before it"),
        ("0 1\n1 2\n1 3\n", "line 3 has the time 1, which is not after the one before it"),
        ("0 1\n1 2\n0.5 3\n", "line 3 has the time 0.5, which is not after the one before it"),
        ("0 1\n\nx 3\n", "line 3 has x for a time in seconds"),
        ("0 1\n1 fast\n", "line 2 has fast for rate"),
        ("0 1\n1 2 3\n", "line 2 has 3 fields, not a time and 1 more"),
        ("0 1\n1 -3\n", "line 2 has -3 for rate"),
        ("-1 1\n", "line 1 has -1 for a time in seconds"),
        ("0 1e300\n", "line 1 has 1e300 for rate"),
        ("0 nan\n", "line 1 has nan for rate"),
        ("0 2000000\n", "line 1 rate 2000000000000 is not between 0 and 1000000000000"),
        ("time speed\n0 1\n", "line 1 has a column speed, which is no key of a path"),
        ("rate time\n0 1\n", "line 1 has rate as its first column, not time, in seconds"),
        ("timestamp_ms rate\n0 1\n", "line 1 has timestamp_ms as its first column, not time, in seconds"),
        ("time rate rate\n0 1 2\n", "line 1 has the column rate twice"),
        ("time delay rate delay\n0 1 2 3\n", "line 1 has the column delay twice"),
        ("time\n0\n", "line 1 has no column beside the time"),
        ("\u{0}\u{1}PK\u{3}", "line 1 has no column beside the time"),
    ] {
        assert_eq!(
            with_trace(&json!({}), trace).unwrap_err(),
            format!("changes.0.trace a.csv: {message}"),
            "{trace:?}"
        );
    }
    let missing = |_: &str| Err("cannot be read from a.csv: no such file".to_owned());
    let settings = json!({"changes": [{"trace": "a.csv"}]});
    let error = PathConfig::read(settings.as_object().unwrap(), &missing).unwrap_err();
    assert_eq!(error.to_string(), "changes.0.trace cannot be read from a.csv: no such file");
    let twice = json!({"changes": [{"trace": "a"}, {"forward": {"rate_bps": 5}, "for_ns": 1}]});
    let overlapping = read(&twice, "0 1").unwrap_err();
    assert_eq!(overlapping, "changes.1.start_ns changes rate while another change of it may hold");
}

proptest! {
    #[test]
    fn reading_never_panics_and_what_is_read_is_replayed(
        text in prop_oneof!["[0-9a-z .,;#\t\n-]{0,120}", "([0-9]{1,4} [0-9]{1,3} ([0-9]{1,3} ){1,4}\n){1,6}"],
        columns in proptest::option::of(proptest::sample::subsequence(vec!["rate", "delay", "loss"], 1..=3)),
    ) {
        let keys = columns.map_or_else(|| json!({}), |columns| json!({"columns": columns}));
        if let Ok(config) = with_trace(&keys, &text) {
            let mut world = World::new(config.direction(Side::Forward, Seed(1)));
            world.send_at(Instant::ZERO, 100);
            prop_assert!(world.next_fate().is_some());
            config.effect(Side::Forward);
        }
    }
}

/// Departures of packets with these send times and sizes, in ms.
fn left(config: &PathConfig, sent: &[(u64, u64)]) -> Vec<u64> {
    let mut world = World::new(config.direction(Side::Forward, Seed(1)));
    for (at, size) in sent {
        world.send_at(Instant::from_nanos(at * 1_000_000), *size);
    }
    std::iter::from_fn(|| world.next_fate()).map(|(packet, _)| packet.at.as_nanos() / 1_000_000).collect()
}

#[test]
fn light_deliveries_are_those_of_a_burst_after_a_pause() {
    let light = json!({"light_deliveries": [0, 4, 4, 9]});
    let config = deliveries(&light).unwrap();
    // Two small ones share an opportunity; the fourth takes the second of 4 ms, the fifth that of 9 ms; the sixth none.
    let burst = [(100, 700), (100, 800), (100, 1500), (101, 1500), (102, 1500), (103, 1500)];
    assert_eq!(left(&config, &burst), [100, 100, 104, 104, 109, 109]);
    // The last one left at 104 ms: at 104 ms its burst goes on, after that another begins.
    let next = [(100, 1500), (100, 1500), (104, 1500), (105, 1500)];
    assert_eq!(left(&config, &next), [100, 104, 104, 105]);
    // A larger packet takes several opportunities.
    assert_eq!(left(&config, &[(0, 3000), (0, 40)]), [4, 4]);
    assert!(config.effect(Side::Forward).changes && !config.is_random());
}

#[test]
fn what_a_burst_cannot_send_lightly_waits_for_the_busy_link() {
    let both = json!({"light_deliveries": [0, 4], "delivery_trace": [20]});
    let config = deliveries(&both).unwrap();
    // The third and the fourth wait for 20 and 40 ms; packets after a pause find the link busy until then, then idle.
    let sent = [(0, 1500), (0, 1500), (0, 1500), (1, 1500), (30, 1500), (70, 1500)];
    assert_eq!(left(&config, &sent), [0, 4, 20, 40, 60, 70]);
}

#[test]
fn a_table_of_cellreplay_has_a_delay_and_a_burst_at_each_time() {
    let config = with_trace(&json!({}), "0 20 0 5\n\n1000 30 0 7\n2000 25 0\n").unwrap();
    let sent = [(0, 1500), (0, 1500), (1000, 1500), (1000, 1500), (2000, 1500), (2000, 1500), (3500, 1500)];
    // The last line holds for 1 s, then the table begins again. The second packet at 2 s finds no opportunity or busy
    // link.
    assert_eq!(left(&config, &sent), [20, 25, 1030, 1037, 2025, 2025, 3520]);
    let busy =
        read(&json!({"forward": {"delivery_trace": [50]}, "changes": [{"trace": "a"}]}), "0 20 0 5\n10000 20 0\n")
            .unwrap();
    assert_eq!(left(&busy, &[(0, 1500), (0, 1500), (0, 1500)]), [20, 25, 70]);
    for (trace, message) in [
        ("0 20 0 5\n5\n", "line 2 has no delay behind its time"),
        ("0 20 0 5\n5 x 0\n", "line 2 has x for a time in ms"),
        ("0 20 0 5\n0 20 0\n", "line 2 has the time 0 ms, which is not after the one before it"),
        ("0 20 0 5 3\n", "line 1 has a delivery at 3 ms behind one at 5 ms"),
        ("0 999999999 0 5\n", "line 1 delay 999999999000000 is not between 0 and 600000000000"),
        ("0 20 0 99999999999999999999\n", "line 1 has 99999999999999999999 for a time in ms"),
    ] {
        assert_eq!(with_trace(&json!({}), trace).unwrap_err(), format!("changes.0.trace a.csv: {message}"));
    }
    for (times, message) in [(json!([]), "is empty"), (json!([3, 1]), "has 1 behind 3, which is later")] {
        let refused = deliveries(&json!({"light_deliveries": times})).unwrap_err();
        assert_eq!(refused, format!("forward.light_deliveries {message}"));
    }
}

proptest! {
    #[test]
    fn light_deliveries_keep_the_order_and_carry_no_more_than_their_bytes(
        steps in proptest::collection::vec(0_u64..9, 1..12),
        sends in proptest::collection::vec((0_u64..120, 20_u64..3000), 1..40),
        busy in proptest::option::of(1_u64..30),
    ) {
        let times: Vec<u64> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }).collect();
        let mut settings = json!({"light_deliveries": times});
        if let Some(busy) = busy {
            settings["delivery_trace"] = json!([busy]);
        }
        let config = deliveries(&settings).unwrap();
        let mut world = World::new(config.direction(Side::Forward, Seed(1)));
        let mut order: Vec<(u64, u64)> = sends.clone();
        order.sort_by_key(|(at, _)| *at);
        for (at, size) in &order {
            world.send_at(Instant::from_nanos(at * 1_000_000), *size);
        }
        let mut last = (0, Instant::ZERO);
        let mut count = 0;
        while let Some((packet, fate)) = world.next_fate() {
            prop_assert!(matches!(fate, Fate::Delivered(_)));
            prop_assert!(packet.index >= last.0 && packet.at >= last.1 && packet.at >= packet.entered);
            prop_assert_eq!(packet.at - packet.entered, packet.spent.total());
            last = (packet.index, packet.at);
            count += 1;
        }
        prop_assert_eq!(count, sends.len());
    }
}

fn deliveries(settings: &Value) -> Result<PathConfig, String> {
    read(&json!({"forward": settings}), "")
}

#[test]
fn deliveries_are_those_of_mahimahi() {
    // Two opportunities at 5 ms, one at 7 and at 10 ms, and again after every 10 ms.
    let config = deliveries(&json!({"delivery_trace": [5, 5, 7, 10]})).unwrap();
    let mut world = World::new(config.direction(Side::Forward, Seed(1)));
    for (at, size) in [(0, 1500), (0, 700), (0, 800), (0, 3000), (16, 40), (20, 40)] {
        world.send_at(Instant::from_nanos(at * 1_000_000), size);
    }
    let arrived: Vec<(u64, u64)> = std::iter::from_fn(|| world.next_fate())
        .map(|(packet, _)| (packet.index, packet.at.as_nanos() / 1_000_000))
        .collect();
    // The small ones share the second opportunity; the large one takes those at 7 and 10 ms. The packet at 16 ms takes
    // that at 17 ms; the one at 20 ms comes too late for that at 20 ms.
    assert_eq!(arrived, [(0, 5), (1, 5), (2, 5), (3, 10), (4, 17), (5, 25)]);
    // 4 times 1500 bytes in 10 ms.
    assert_eq!(config.effect(Side::Forward).rate.unwrap().as_bps(), 4_800_000);
}

#[test]
fn a_queue_before_deliveries_drops_what_does_not_fit() {
    let config =
        deliveries(&json!({"delivery_trace": [10], "delivery_queue": {"packets": 2}, "delivery_once": true})).unwrap();
    let mut world = World::new(config.direction(Side::Forward, Seed(1)));
    for _ in 0..4 {
        world.send_at(Instant::ZERO, 1500);
    }
    let fates = world.run();
    assert_eq!(fates[2], (0, Fate::Delivered(Instant::from_nanos(10_000_000))));
    assert_eq!(fates.iter().filter(|(_, fate)| matches!(fate, Fate::Dropped(..))).count(), 2);
    // After the end of a trace without repetition, the second stays.
    assert_eq!((fates.len(), world.queued()), (3, 1));
}

#[test]
fn what_is_no_trace_of_deliveries_is_refused() {
    for (settings, message) in [
        (json!({"delivery_trace": []}), "is empty"),
        (json!({"delivery_trace": [0, 0]}), "ends at 0: it lasts no time"),
        (json!({"delivery_trace": [3, 1]}), "has 1 as number 2, which is before the 3 in front of it"),
    ] {
        assert_eq!(deliveries(&settings).unwrap_err(), format!("forward.delivery_trace {message}"));
    }
    let changing = json!({"forward": {"delivery_trace": [1]}, "changes": [{"forward": {"delivery_trace": [2]}}]});
    assert!(read(&changing, "").unwrap_err().contains("delivery_trace cannot change over time"));
    let alone = deliveries(&json!({"delivery_queue": {"packets": 2}})).unwrap_err();
    assert_eq!(alone, "forward.delivery_queue is set but delivery_trace is not");
}

proptest! {
    #[test]
    fn deliveries_carry_no_more_than_their_bytes_and_keep_the_order(
        steps in proptest::collection::vec(0_u64..20, 1..30),
        sends in proptest::collection::vec((0_u64..200, 20_u64..4000), 1..60),
    ) {
        let mut trace: Vec<u64> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum) }).collect();
        *trace.last_mut().unwrap() += 1;
        let config = deliveries(&json!({"delivery_trace": trace})).unwrap();
        let mut world = World::new(config.direction(Side::Forward, Seed(1)));
        for (at, size) in &sends {
            world.send_at(Instant::from_nanos(at * 1_000_000), *size);
        }
        let mut last = None;
        let mut by_time = std::collections::BTreeMap::<u64, u64>::new();
        while let Some((packet, _)) = world.next_fate() {
            prop_assert!(last < Some(packet.index));
            last = Some(packet.index);
            *by_time.entry(packet.at.as_nanos() / 1_000_000).or_default() += packet.size.0;
        }
        prop_assert_eq!(world.queued(), 0);
        // Up to any time, no more has passed than the opportunities until then.
        let length = *trace.last().unwrap();
        let mut passed = 0;
        for (time, bytes) in by_time {
            passed += bytes;
            let turns = time / length;
            let in_turns = turns * trace.len() as u64;
            let in_last = trace.iter().filter(|at| **at + turns * length <= time).count() as u64;
            prop_assert!(passed <= (in_turns + in_last) * 1500, "{time} ms");
        }
    }
}
