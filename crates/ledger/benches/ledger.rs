//! The ledger's cost: `cargo bench -p crosswind-ledger`. It prints figures and makes no judgement.

#![allow(clippy::unwrap_used)] // a benchmark that cannot run stops

use crosswind_ledger::{
    Capture, CaptureOptions, DropCause, Headers, PacketRecord, PacketTable, PayloadClock, Recorder, TimeHistogram,
    Verdict, Wanted,
};
use crosswind_path::Side;
use crosswind_path::loss::LOSS;
use crosswind_units::{Bytes, Instant};
use std::fs::File;
use std::hint::black_box;
use std::time;

const ROUNDS: u64 = 20_000_000;

fn main() {
    per_call();
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let before = peak_memory();
    stream(1_000_000, false);
    println!("  peak memory, before and after: {:.1} and {:.1} MiB", mib(before), mib(peak_memory()));
    stream(100_000, true);
    println!("  peak memory: {:.1} MiB", mib(peak_memory()));
}

/// Nanoseconds per call, for the calls made for every packet.
fn per_call() {
    let mut tcp_v4 = vec![0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    tcp_v4.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x80, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
    tcp_v4.resize(1500, 0);
    let mut udp_v6 = vec![0x60, 0, 0, 0, 0x05, 0xb4, 17, 64];
    udp_v6.extend([0xfd; 32]);
    udp_v6.extend([0x9c, 0x40, 0, 53, 0x05, 0xb4, 0, 0]);
    udp_v6.resize(1500, 0);
    let mut extended_v6 = udp_v6.clone();
    extended_v6[6] = 0;
    extended_v6[40..64].copy_from_slice(&[60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 17, 0, 1, 4, 0, 0, 0, 0]);
    for (name, packet) in [("TCP/IPv4", &tcp_v4), ("UDP/IPv6", &udp_v6), ("UDP/IPv6, 3 extensions", &extended_v6)] {
        measure(&format!("Headers::parse, {name}"), |_| {
            black_box(Headers::parse(black_box(packet)));
        });
    }
    let mut histogram = TimeHistogram::new();
    measure("TimeHistogram::record", |i| histogram.record(black_box(i % 100_000)));
    let clock = PayloadClock::new();
    measure("PayloadClock::record", |i| clock.record(Side::Forward, (i % 8) as u16, Instant::from_nanos(i)));
    let mut off = Recorder::off();
    measure("Recorder::packet, off", |i| off.packet(black_box(record(i))));
}

fn measure(name: &str, mut call: impl FnMut(u64)) {
    let start = time::Instant::now();
    (0..ROUNDS).for_each(&mut call);
    println!("{name}: {:.1} ns", start.elapsed().as_nanos() as f64 / ROUNDS as f64);
}

/// So many packets through recorder and sink into real files.
fn stream(packets: u64, capture: bool) {
    let directory = std::env::temp_dir().join(format!("crosswind-ledger-bench-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let table = PacketTable::new(File::create(directory.join("packets.arrow")).unwrap(), Instant::ZERO).unwrap();
    let captures = capture.then(|| {
        ["client", "server"].map(|host| {
            let options = CaptureOptions { host, snap_bytes: 1500, wall_clock_origin_ns: 0 };
            Capture::new(File::create(directory.join(host)).unwrap(), options).unwrap()
        })
    });
    let (mut recorder, sink) = Recorder::new(true, if capture { Wanted::Captures } else { Wanted::Nothing });
    let sink =
        std::thread::spawn(move || sink.run(Some(table), captures.map(|[client, server]| (client, server))).unwrap());
    let packet = [0x45; 1500];
    let start = time::Instant::now();
    for i in 0..packets {
        recorder.sent(Side::Forward, Instant::from_nanos(i), &packet, None);
        recorder.received(Side::Forward, Instant::from_nanos(i), &packet);
        recorder.packet(record(i));
    }
    recorder.finish();
    let handed_over = start.elapsed();
    let report = sink.join().unwrap();
    println!(
        "{packets} packets, capture {capture}: {:.0} ns a packet on the recorder's thread, on disk \
         after {:.2} s; {report:?}",
        handed_over.as_nanos() as f64 / packets as f64,
        start.elapsed().as_secs_f64()
    );
    std::fs::remove_dir_all(directory).unwrap();
}

fn record(index: u64) -> PacketRecord {
    let dropped = index.is_multiple_of(20);
    PacketRecord {
        size: Bytes(1500),
        due: Instant::from_nanos(index * 1000 + 500),
        left: (!dropped).then_some(Instant::from_nanos(index * 1000 + 510)),
        verdict: if dropped { Verdict::Dropped(DropCause::Path(LOSS)) } else { Verdict::Delivered },
        ..PacketRecord::new(Side::Forward, index, Instant::from_nanos(index * 1000), Headers::default())
    }
}

/// The process's largest resident size so far, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
}
