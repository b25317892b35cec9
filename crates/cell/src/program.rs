//! The workload `program`: somebody else's client and server in the two namespaces.

use crate::{Cell, CellError};
use crosswind_host::Testbed;
use crosswind_host::program::{ProgramId, Programs, output_file};
use crosswind_workload::WorkloadConfig;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// How long the client waits for a server to come up: it has no other sign of it than being still there.
const HEAD_START: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(5);

/// How long a server has to write its last words once the client has ended.
const GRACE: Duration = Duration::from_millis(500);

/// A running pair.
pub struct Pair {
    programs: Programs,
    client: ProgramId,
    server: Option<ProgramId>,
}

impl Pair {
    /// Starts the cell's programs; `None` when it has none.
    pub fn start(cell: &Cell, testbed: &Testbed) -> Result<Option<Self>, CellError> {
        let WorkloadConfig::Program(program) = &cell.workload else { return Ok(None) };
        let mut programs = Programs::new()?;
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
            let started = programs.start(&testbed.server, testbed.cpus.server(), &fill_in(arguments), out, err)?;
            std::thread::sleep(HEAD_START);
            if let Some(status) = programs.try_wait(started)?
                && !status.success()
            {
                return Err(CellError::new("host", format!("the server program ended at once: {status}"))
                    .hint("its own words are in server.err of the output directory"));
            }
            server = Some(started);
        }
        let (out, err) = (file("client.out")?, file("client.err")?);
        let client = programs.start(&testbed.client, testbed.cpus.client(), &fill_in(&program.client), out, err)?;
        Ok(Some(Self { programs, client, server }))
    }

    /// Waits a little for the client's end.
    pub fn poll(&mut self) -> Result<Option<ExitStatus>, CellError> {
        std::thread::sleep(LOOK);
        Ok(self.programs.try_wait(self.client)?)
    }

    /// Ends what is left of the server.
    pub fn finish(mut self) -> Result<(), CellError> {
        if let Some(server) = self.server {
            self.programs.terminate(server, GRACE)?;
        }
        Ok(())
    }
}
