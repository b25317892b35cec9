//! Program: a client and a server that somebody else wrote, in the two namespaces.

use crate::WorkloadError;
use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::measured::{Measured, ProgramEnd};
use crate::workload::{ConnectionNeeds, Workload, WorkloadSettings};
use crosswind_host::program::{Programs, output_file};
use crosswind_host::{ErrorKind, HostError, Testbed};
use crosswind_settings::SettingError;
use crosswind_transport::Features;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::process::Stdio;
use std::time::Duration;

/// How long the client waits for a server to get ready. Nothing else tells when it is, but that it has not ended.
const HEAD_START: Duration = Duration::from_millis(200);
/// How long a server may still write once the client has ended.
const GRACE: Duration = Duration::from_millis(500);

/// A client and a server that somebody else wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Argument list run on the client, whose end is the cell's; {server} and {client} stand for addresses, and in a study {python}
    /// for the Python that runs it and {cell} for crosswind-cell.
    pub client: Vec<String>,
    /// Argument list run on the server, likewise; it is ended after the client.
    #[serde(default)]
    pub server: Option<Vec<String>>,
}

impl WorkloadSettings for Program {
    const KIND: &'static str = "program";
    const SAMPLE: &'static str = "none: what the programs print goes to files";

    fn fits(_features: &Features) -> bool {
        false
    }

    fn check(&self) -> Result<(), SettingError> {
        let server = self.server.as_deref();
        for (key, arguments) in [("client", Some(self.client.as_slice())), ("server", server)] {
            if arguments.is_some_and(<[String]>::is_empty) {
                let hint = "give the program and its arguments";
                return Err(SettingError::new(key, "is an empty argument list", hint));
            }
            if arguments.into_iter().flatten().any(|argument| argument.contains('\0')) {
                let hint = "an argument is a text without the character 0";
                return Err(SettingError::new(key, "has an argument that no program can be given", hint));
            }
        }
        Ok(())
    }
}

impl Workload for Program {
    fn connections(&self) -> Option<ConnectionNeeds> {
        None
    }

    fn exchanges(&self) -> u64 {
        0
    }

    fn traffic(&self) -> TrafficPattern {
        TrafficPattern::Unknown {}
    }

    fn run(&self, context: &Context<'_>) -> Result<Measured, WorkloadError> {
        let testbed = context.testbed;
        let mut programs = Programs::new()?;
        let file = |name: &str| match context.output {
            Some(directory) => output_file(&directory.join(name)),
            None => Ok(Stdio::null()),
        };
        let mut server = None;
        if let Some(arguments) = &self.server {
            let (out, err) = (file("server.out")?, file("server.err")?);
            let arguments = with_addresses(arguments, testbed);
            let started = programs.start(&testbed.server, testbed.cpus.server(), &arguments, out, err)?;
            std::thread::sleep(HEAD_START);
            if let Some(status) = programs.try_wait(started)?
                && !status.success()
            {
                return Err(HostError {
                    what: "the server program ended at once".into(),
                    cause: status.to_string(),
                    kind: ErrorKind::Host,
                    hint: Some("server.err in the output directory holds what it wrote".into()),
                }
                .into());
            }
            server = Some(started);
        }
        let (out, err) = (file("client.out")?, file("client.err")?);
        let arguments = with_addresses(&self.client, testbed);
        let client = programs.start(&testbed.client, testbed.cpus.client(), &arguments, out, err)?;
        let status = programs.wait(client)?;
        if let Some(server) = server {
            programs.terminate(server, GRACE)?;
        }
        Ok(Measured { program: Some(ProgramEnd::from(status)), ..Measured::default() })
    }
}

fn with_addresses(arguments: &[String], testbed: &Testbed) -> Vec<String> {
    let (server, client) = (testbed.server_address.to_string(), testbed.client_address.to_string());
    arguments.iter().map(|argument| argument.replace("{server}", &server).replace("{client}", &client)).collect()
}
