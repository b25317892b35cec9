//! An HTTP end's recorded writes.

use crosswind_ledger::{HttpFrame, HttpRecorder, HttpWrite};
use crosswind_units::Instant;
use proptest::prelude::*;

const MOST: usize = 1000;

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, (payload.len() >> 8) as u8, payload.len() as u8, kind, 0, 0, 0, 0, stream];
    bytes.extend(payload);
    bytes
}

/// A client's preface, its settings, a request's header and data, and a window.
fn client() -> Vec<u8> {
    let settings = [0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0];
    let parts = [vec![b'p'; 24], frame(4, 0, &settings), frame(1, 5, &[7; 30]), frame(0, 5, &[8; 300])];
    [parts.concat(), frame(8, 0, &[0, 0, 128, 0])].concat()
}

fn write(ns: u64, range: std::ops::Range<u64>, stream: u64, frame: HttpFrame) -> HttpWrite {
    HttpWrite { at: at(ns), start: range.start, end: range.end, stream, frame }
}

#[test]
fn frames_tell_which_bytes_are_whose() {
    let mut recorder = HttpRecorder::http2(40_000, true, MOST);
    recorder.begin(at(1));
    recorder.write(at(2), &client()[..150]);
    recorder.write(at(3), &client()[150..]);
    assert_eq!(
        recorder.finish().writes,
        [
            write(2, 0..24, 0, HttpFrame::Other),
            write(2, 24..45, 0, HttpFrame::InitialWindow(65_536)),
            write(2, 45..84, 5, HttpFrame::Other),
            write(2, 84..150, 5, HttpFrame::Data(300)),
            write(3, 150..393, 5, HttpFrame::Other),
            write(3, 393..406, 0, HttpFrame::WindowUpdate(32_768)),
        ]
    );
}

#[test]
fn records_tell_where_bytes_are_on_the_socket() {
    let mut recorder = HttpRecorder::http1(40_000, MOST).over_tls();
    let record = |kind, length: u16| [vec![kind, 3, 3], length.to_be_bytes().into(), vec![0; length.into()]].concat();
    // A handshake with 305 and 58 bytes.
    recorder.write_record(&record(22, 300));
    recorder.write_record(&record(23, 53));
    recorder.begin(at(1));
    for (number, length) in [(1, 100), (2, 20)] {
        assert_eq!(recorder.begin_exchange(), number);
        recorder.write(at(number), &vec![0; length]);
    }
    let records = [record(23, 90 + 17), record(23, 30 + 17)].concat();
    recorder.write_record(&records[..3]);
    recorder.write_record(&records[3..]);
    let (first, second) = (363..363 + 112 + 52, 363 + 112..363 + 112 + 52);
    assert_eq!(recorder.finish().writes, [write(1, first, 1, HttpFrame::Other), write(2, second, 2, HttpFrame::Other)]);
}

#[test]
fn of_a_program_only_flow_control_is_kept() {
    let mut recorder = HttpRecorder::of_program(true);
    recorder.write(at(0), &client()[..150]);
    recorder.write(at(0), &client()[150..]);
    let expected = [
        write(0, 24..45, 0, HttpFrame::InitialWindow(65_536)),
        write(0, 84..393, 5, HttpFrame::Data(300)),
        write(0, 393..406, 0, HttpFrame::WindowUpdate(32_768)),
    ];
    assert_eq!(recorder.kept(), 3);
    assert_eq!(recorder.finish().writes, expected);
    // In records at 1000 and 2000.
    let mut recorder = HttpRecorder::of_program(true);
    recorder.read_record(1000..1172, &client()[..150]);
    recorder.read_record(2000..2278, &client()[150..]);
    let placed = |place: std::ops::Range<u64>, of: &HttpWrite| HttpWrite { start: place.start, end: place.end, ..*of };
    let [settings, data, window] = &expected;
    assert_eq!(
        recorder.finish().writes,
        [placed(1000..1172, settings), placed(1000..2278, data), placed(2000..2278, window)]
    );
}

proptest! {
    #[test]
    fn cuts_change_nothing_but_their_number(cuts in prop::collection::vec(1_usize..60, 0..100)) {
        let mut recorder = HttpRecorder::http2(1, true, MOST);
        let mut rest = &client()[..];
        for cut in cuts {
            let (now, later) = rest.split_at(cut.min(rest.len()));
            recorder.write(at(0), now);
            rest = later;
        }
        recorder.write(at(0), rest);
        let writes = recorder.finish().writes;
        let mut whole = HttpRecorder::http2(1, true, MOST);
        whole.write(at(0), &client());
        prop_assert_eq!(writes, whole.finish().writes);
    }

    #[test]
    fn any_bytes_are_read_and_none_are_counted_twice(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..50),
        is_client: bool,
    ) {
        let mut recorder = HttpRecorder::http2(1, is_client, MOST).over_tls();
        recorder.begin(at(0));
        for part in &parts {
            recorder.write(at(0), part);
            recorder.write_record(part);
        }
        let writes = recorder.finish().writes;
        prop_assert!(writes.iter().all(|it| it.start < it.end));
        prop_assert!(writes.windows(2).all(|pair| pair[0].start <= pair[1].start));
    }
}
