//! A cell's packet records and captures, written by a separate thread.

use crate::table::UnfinishedFile;
use crate::{Cell, CellError, spawn};
use crosswind_host::Testbed;
use crosswind_ledger::{Capture, CaptureOptions, LedgerError, PacketTable, Sink, SinkReport};
use crosswind_units::Instant;
use std::fs::File;
use std::thread::JoinHandle;

/// Files under way.
pub struct Files {
    recorder: JoinHandle<Result<SinkReport, LedgerError>>,
    unfinished: Vec<UnfinishedFile>,
}

impl Files {
    /// Begins the files requested by `cell`, from `sink`. Times count from `zero`.
    pub fn start(cell: &Cell, testbed: &Testbed, zero: Instant, sink: Sink) -> Result<Self, CellError> {
        let mut unfinished = Vec::new();
        let mut begin = |name| -> Result<Option<File>, CellError> {
            let Some(directory) = &cell.output.directory else { return Ok(None) };
            let (started, file) = UnfinishedFile::create(directory, name)?;
            unfinished.push(started);
            Ok(Some(file))
        };
        let mut packets = None;
        if cell.output.packets {
            packets = begin("packets.arrow")?.map(|file| PacketTable::new(file, zero)).transpose()?;
        }
        let mut captures = None;
        if cell.output.capture && testbed.is_emulated() {
            // Once: two readings of two clocks would shift the files against each other.
            let wall_clock_origin_ns = testbed.clock.wall_clock_origin_ns();
            let options = |host| CaptureOptions { host, snap_bytes: cell.path.mtu_bytes, wall_clock_origin_ns };
            if let (Some(client), Some(server)) = (begin("client.pcapng")?, begin("server.pcapng")?) {
                captures = Some((Capture::new(client, options("client"))?, Capture::new(server, options("server"))?));
            }
        }
        let recorder = spawn("recorder", move || sink.run(packets, captures))?;
        Ok(Self { recorder, unfinished })
    }

    /// Waits until everything is written, and gives the files their names.
    pub fn finish(self) -> Result<SinkReport, CellError> {
        let report = self.recorder.join().map_err(|_| CellError::internal("the recorder panicked"))??;
        for file in self.unfinished {
            file.complete()?;
        }
        Ok(report)
    }
}
