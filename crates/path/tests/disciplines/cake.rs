//! CAKE: no specification has its pseudocode. The paper's statements ("Piece of CAKE", LANMAN 2018) are checked by
//! arithmetic; the numbers of drops and marks against Linux's `sch_cake` in `tests/virtual/test_queues.py`.

use super::*;

const PACKET: u64 = 1000;

/// One flow's packets: source and destination address, port, codepoint, and interval in ns.
type Sender = (u32, u32, u32, u8, u64);

/// Each sender's deliveries at 8 Mbit/s from `from` to `to`.
fn shares(settings: &Value, senders: &[Sender], from: u64, to: u64) -> Vec<usize> {
    let mut settings = settings.clone();
    (settings["rate_bps"], settings["discipline"]) = (RATE_BPS.into(), "cake".into());
    let config = DirectionConfig::from_object(settings.as_object().unwrap()).unwrap();
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    for (number, (.., every)) in senders.iter().enumerate() {
        arrivals.extend((0..to / every).map(|count| (count * every, number)));
    }
    arrivals.sort_unstable();
    let mut world = World::new(Direction::from_config(&config, Seed(1)));
    for (at, number) in arrivals {
        let (source, destination, flow, dscp, _) = senders[number];
        let arrival = Arrival {
            size: Bytes(PACKET),
            flow,
            source,
            destination,
            dscp,
            buffer: number as u32,
            ..Arrival::default()
        };
        world.arrive_at(Instant::from_nanos(at), arrival);
    }
    let mut delivered = vec![0; senders.len()];
    while let Some((packet, fate)) = world.next_fate() {
        if matches!(fate, Fate::Delivered(_)) && (from..to).contains(&packet.at.as_nanos()) {
            delivered[packet.buffer as usize] += 1;
        }
    }
    delivered
}

/// Interval that alone fills the link.
const FULL: u64 = PACKET * BYTE_NS;

#[test]
fn a_flow_is_marked_as_by_codel_whose_interval_shrinks_with_the_root_of_the_count() {
    let packets: Vec<_> = (0..2000)
        .map(|index| (index * FULL / 2, Pkt { index, size: PACKET, flow: 1, ecn: Ecn::Ect0, enqueued: 0 }))
        .collect();
    let ends = emulate(&json!({"discipline": "cake"}), 1, &packets);
    let sent = |index: u64| ends[&index].0 - FULL;
    let marked: Vec<u64> = (0..2000).filter(|index| ends[index].2 == Ecn::Marked).map(sent).collect();
    // A packet comes every 0.5 ms and one leaves every 1 ms. The target is 5 ms, but never less than 1514 bytes take four times: 6.1 ms. The
    // 13th waits longer, and the next is marked: Linux does not wait for the interval where a queue has never been above its target.
    let mut due = 13 * MS;
    for (count, marked) in (2_u64..).zip(&marked) {
        assert_eq!(*marked, due.next_multiple_of(MS).max(14 * MS), "signal {}", count - 1);
        due = super::codel::control_law(due, 100 * MS, count);
    }
    assert!(marked.len() > 50, "{} marks", marked.len());
    assert!(ends.values().all(|(_, delivered, _)| *delivered));
}

#[test]
fn hosts_get_equal_shares_however_many_flows_they_have() {
    // One flow from the first host, three from the second; all to one, or each to a host of its own.
    let share = |isolation: &str, destinations: [u32; 2]| {
        let [one, other] = destinations;
        let senders = [(1, one, 1, 0, FULL), (2, other, 2, 0, FULL), (2, other, 3, 0, FULL), (2, other, 4, 0, FULL)];
        let settings = json!({"cake_isolation": isolation, "cake_tins": "besteffort"});
        shares(&settings, &senders, 1000 * MS, 2500 * MS)
    };
    // 1500 packets leave. A share is exact to one turn.
    let near = |counts: &[usize], expected: [usize; 4]| {
        assert!(counts.iter().zip(expected).all(|(count, expected)| count.abs_diff(expected) <= 3), "{counts:?}");
    };
    let (by_flow, by_host) = ([375; 4], [750, 250, 250, 250]);
    near(&share("flows", [1, 2]), by_flow);
    near(&share("dual_srchost", [1, 1]), by_host);
    near(&share("dual_dsthost", [1, 1]), by_flow);
    near(&share("dual_dsthost", [1, 2]), by_host);
    // The host with more flows decides: here the common destination.
    near(&share("triple_isolate", [1, 1]), by_flow);
    near(&share("triple_isolate", [1, 2]), by_host);
    // In one common queue, a host's packets get their share of it.
    for isolation in ["srchost", "hosts"] {
        let counts = share(isolation, [1, 1]);
        assert!(counts[0].abs_diff(750) <= 3, "{counts:?}");
    }
}

#[test]
fn a_tin_goes_first_up_to_its_rate_and_best_effort_gets_what_is_left() {
    let of = |tins: &str, senders: &[(u8, u64)]| {
        let senders = senders.iter().zip(1..).map(|((dscp, every), flow)| (1, 1, flow, *dscp, *every));
        shares(&json!({"cake_tins": tins}), &senders.collect::<Vec<_>>(), 1000 * MS, 2600 * MS)
    };
    // Voice (EF) at a fifth of the link, with a right to a quarter, loses nothing.
    let calm = of("diffserv3", &[(0, FULL), (46, 5 * FULL)]);
    assert_eq!(calm[1], 320);
    let near = |counts: &[usize], expected: &[usize]| {
        assert!(counts.iter().zip(expected).all(|(count, expected)| count.abs_diff(*expected) <= 3), "{counts:?}");
    };
    // Of 1600 packets bulk (CS1) gets a sixteenth, voice a quarter, video (AF41) a half, and best effort the rest.
    near(&of("diffserv3", &[(0, FULL), (8, FULL), (46, FULL)]), &[1100, 100, 400]);
    near(&of("diffserv4", &[(0, FULL), (8, FULL), (34, FULL), (46, FULL)]), &[300, 100, 800, 400]);
    // Among eight tins the last has the rate times (7/8)^7, the one before 8/7 of that.
    near(&of("diffserv8", &[(0, FULL), (46, FULL), (48, FULL)]), &[254, 718, 628]);
    // Unused shares go to the others.
    near(&of("diffserv3", &[(8, FULL / 2)]), &[1600]);
}

#[test]
fn a_thousand_flows_have_queues_of_their_own_more_often_than_by_a_plain_hash() {
    // 128 flows with one packet each: in sets of eight, two share a queue only if nine flows meet. Each second packet
    // arrives behind all others.
    let packet = |index: u64| Pkt { index, size: PACKET, flow: index as u32 % 128, ecn: Ecn::NotCapable, enqueued: 0 };
    let packets: Vec<_> = (0..256).map(|index| (index / 128, packet(index))).collect();
    let ends = emulate(&json!({"discipline": "cake", "cake_tins": "besteffort"}), 1, &packets);
    // At 8 Mbit/s a turn has 300 bytes: all first packets go before any second one, if no flows share a queue.
    let last_first = (0..128).map(|index| ends[&index].0).max().unwrap();
    let first_second = (128..256).map(|index| ends[&index].0).min().unwrap();
    assert!(last_first < first_second, "{last_first} {first_second}");
    // 128 flows in 1024 queues by a plain hash: at least two would share with a probability of 0.9996.
}

#[test]
fn what_fills_the_memory_is_dropped_of_the_longest_queue_and_then_at_random() {
    // Nobody reacts: three times the link's rate, in a memory for 20 packets, and no wait is longer than 20 ms.
    let packets: Vec<_> = (0..3000)
        .map(|index| (index * FULL / 3, Pkt { index, size: PACKET, flow: 1, ecn: Ecn::NotCapable, enqueued: 0 }))
        .collect();
    let settings = json!({"discipline": "cake", "queue": {"packets": 20}});
    let ends = emulate(&settings, 1, &packets);
    let waits: Vec<u64> = packets.iter().map(|(at, pkt)| ends[&pkt.index].0 - at).collect();
    assert!(waits.iter().all(|wait| *wait <= 21 * MS), "{:?}", waits.iter().max());
    // The link is never idle after its first packet.
    let delivered = ends.values().filter(|(_, delivered, _)| *delivered).count();
    assert!((1000..=1021).contains(&delivered), "{delivered}");
    assert_eq!(ends, emulate(&settings, 1, &packets));
    assert_ne!(ends, emulate(&settings, 2, &packets), "BLUE draws from the seed");
}

#[test]
fn a_link_of_cells_takes_as_long_as_its_cells() {
    let took = |settings: &Value, size: u64| {
        let packet = Pkt { index: 0, size, flow: 1, ecn: Ecn::NotCapable, enqueued: 0 };
        emulate(settings, 1, &[(0, packet)])[&0].0 / BYTE_NS
    };
    // RFC 2684 with LLC and PPPoE: 40 bytes more, and 53 bytes for each 48.
    let atm = json!({"link_overhead_bytes": 40, "link_cells": "atm"});
    assert_eq!([40, 56, 57, 1500].map(|size| took(&atm, size)), [106, 106, 159, 33 * 53]);
    let ptm = json!({"link_overhead_bytes": 30, "link_mpu_bytes": 68, "link_cells": "ptm"});
    assert_eq!([20, 38, 39, 1500].map(|size| took(&ptm, size)), [70, 70, 71, 1530 + 24]);
    let docsis = json!({"link_overhead_bytes": 18, "link_mpu_bytes": 64, "discipline": "cake"});
    assert_eq!([20, 46, 47].map(|size| took(&docsis, size)), [64, 64, 65]);
}
