//! The workload `program`: somebody else's client and server in the two namespaces.

use crate::{Cell, CellError};
use crosswind_host::Testbed;
use crosswind_host::program::{Programs, output_file};
use crosswind_workload::WorkloadConfig;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// How long the client waits for a server to come up: it has no other sign of it than being still there.
const HEAD_START: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(5);

/// A running pair.
pub struct Pair {
    client: Child,
    server: Option<Child>,
    _programs: Programs,
}

impl Pair {
    /// Starts the cell's programs; `None` when it has none.
    pub fn start(cell: &Cell, testbed: &Testbed) -> Result<Option<Self>, CellError> {
        let WorkloadConfig::Program(program) = &cell.workload else { return Ok(None) };
        let programs = Programs::new()?;
        let file = |name: &str| match &cell.output.directory {
            Some(directory) => output_file(&directory.join(name)).map_err(CellError::from),
            None => Ok(Stdio::null()),
        };
        let fill_in = |arguments: &[String]| -> Vec<String> {
            arguments
                .iter()
                .map(|argument| {
                    argument
                        .replace("{server}", &testbed.server_address.to_string())
                        .replace("{client}", &testbed.client_address.to_string())
                })
                .collect()
        };
        let mut server = None;
        if let Some(arguments) = &program.server {
            let (out, err) = (file("server.out")?, file("server.err")?);
            let mut child = programs.start(&testbed.server, testbed.cpus.server(), &fill_in(arguments), out, err)?;
            std::thread::sleep(HEAD_START);
            if let Some(status) = child.try_wait().map_err(|e| CellError::new("host", e.to_string()))?
                && !status.success()
            {
                return Err(CellError::new("host", format!("the server program ended at once: {status}"))
                    .hint("its own words are in server.err of the output directory"));
            }
            server = Some(child);
        }
        let (out, err) = (file("client.out")?, file("client.err")?);
        let client = programs.start(&testbed.client, testbed.cpus.client(), &fill_in(&program.client), out, err)?;
        Ok(Some(Self { client, server, _programs: programs }))
    }

    /// Waits a little for the client's end.
    pub fn poll(&mut self) -> Result<Option<ExitStatus>, CellError> {
        std::thread::sleep(LOOK);
        self.client.try_wait().map_err(|e| CellError::new("host", format!("cannot wait for the client program: {e}")))
    }

    /// Ends what is left of the server.
    pub fn finish(mut self) {
        if let Some(server) = &mut self.server {
            // It may have ended by itself.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}
