//! Progress, one JSON object a line.

use crate::CellError;
use crosswind_host::Punctual;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// What is told while a cell runs.
pub enum Event<'a> {
    /// The cell was read.
    Started {
        /// Its name.
        id: &'a str,
    },
    /// The path is up.
    Ready {
        /// How long that took.
        setup_ns: u64,
    },
    /// So far.
    Progress {
        /// Exchanges over.
        done: u64,
        /// Of how many.
        total: u64,
        /// Not ok.
        lost: u64,
        /// Since the path was up.
        elapsed_ns: u64,
        /// Of the exchanges that were ok.
        median_ns: Option<u64>,
        /// Of the emulator, and the longest that a thread of a host waited for a processor; nothing on a direct path.
        fidelity: Option<(Punctual, u64)>,
    },
    /// The end, with the result.
    Finished(&'a Value),
    /// The end, without one.
    Error(&'a CellError),
}

/// Writes events. A reader that has gone ends the process: nobody is left to run the cell for.
pub struct EventWriter<W: Write> {
    writer: W,
}

impl<W: Write> EventWriter<W> {
    /// Events go to `writer`.
    pub const fn new(writer: W) -> Self {
        Self { writer }
    }

    /// Writes one event.
    pub fn write(&mut self, event: &Event<'_>) -> io::Result<()> {
        let value = match event {
            Event::Started { id } => json!({"event": "started", "schema": "crosswind.event/1", "id": id}),
            Event::Ready { setup_ns } => json!({"event": "ready", "setup_ns": setup_ns}),
            Event::Progress { done, total, lost, elapsed_ns, median_ns, fidelity } => json!({
                "event": "progress", "done": done, "total": total, "lost": lost,
                "elapsed_ns": elapsed_ns, "median_ns": median_ns,
                "fidelity": fidelity.map(|(emulator, probe_wait_ns)| json!({
                    "released": emulator.released, "late": emulator.late,
                    "wait_ns": emulator.wait_ns, "probe_wait_ns": probe_wait_ns,
                })),
            }),
            Event::Finished(result) => (*result).clone(),
            Event::Error(CellError { kind, message, hint }) => {
                json!({"event": "error", "kind": kind, "message": message, "hint": hint})
            }
        };
        let mut line = serde_json::to_vec(&Ordered(&value))?;
        line.push(b'\n');
        self.writer.write_all(&line)?;
        self.writer.flush()
    }
}

/// Writes one last event to standard output. Where that fails there is nobody left to tell.
pub fn write_event(event: &Event<'_>) {
    let _ = EventWriter::new(io::stdout()).write(event);
}

/// The event's name first, then the rest: easier to read as it scrolls by.
struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let Some(object) = self.0.as_object() else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(object.len()))?;
        if let Some(name) = object.get("event") {
            map.serialize_entry("event", name)?;
        }
        for (key, value) in object.iter().filter(|(key, _)| *key != "event") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
