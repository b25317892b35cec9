//! Third-party programs at a path's two ends: started in their namespaces, watched, and ended with everything they have
//! started, whatever happens. The workload `program` and the peer protocol use them.
//!
//! - `log`, `kept_output`, `output_tail`: their output, as far as kept, and its tail in messages.
//! - `readiness`, `sign`, `listening`, `ready`: whether a program is ready.
//! - `placeholders`: for addresses, ports and files. `returned_files`: the files that come back with the cell.

pub mod kept_output;
mod listening;
mod log;
pub mod output_tail;
pub mod placeholders;
pub mod readiness;
pub mod ready;
pub mod returned_files;
mod role;
mod sign;

use crate::WorkloadError;
use crate::context::Context;
use crate::warning::Warning;
use crosswind_host::program::{Heard, Launch, Names, ProgramId, Programs, Streams, end_in_words, wrote_too_much};
use crosswind_host::{Home, HostError, ProgramTimes, User};
use crosswind_transport::Carrier;
use listening::is_open;
use log::Log;
pub use log::LogSearch;
use output_tail::output_tail;
pub use role::{PerEnd, Role};
pub use sign::Sign;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// A file's size limit in virtual time, where endless output takes no time at all.
const LARGEST_FILE: u64 = 1 << 30;

/// A running program, with this end of its pipes.
#[derive(Debug)]
pub struct Running {
    pub id: ProgramId,
    pub role: Role,
    pub input: Option<ChildStdin>,
    pub output: Option<ChildStdout>,
}

/// A cell's programs' surroundings, beside the hosts.
#[derive(Default)]
pub struct Surroundings {
    /// The hosts' names; none under the peer protocol.
    pub names: Option<Names>,
    /// Variables beside this process's.
    pub environments: PerEnd<Vec<(String, String)>>,
    /// As whom they run.
    pub users: PerEnd<Option<User>>,
}

/// The programs of a cell.
pub struct CellPrograms<'a> {
    context: &'a Context<'a>,
    environments: PerEnd<Vec<(String, String)>>,
    users: PerEnd<Option<User>>,
    /// The client's and the server's; none where they are as the machine.
    homes: Option<[Home; 2]>,
    /// Why there are none, and directories they share, if any.
    unnamed: Option<String>,
    not_own: Vec<String>,
    /// None once they were ended.
    programs: Option<Programs>,
    kept: Vec<Kept>,
}

/// A program's stream, with its end.
struct Kept {
    role: Role,
    path: Option<PathBuf>,
    writer: Writer,
}

/// The file's writer.
enum Writer {
    /// A thread that reads the program's output from a pipe.
    Log(Log),
    /// The program itself. In virtual time no other thread runs until it waits, which an endless computation never
    /// does; its output is in the file then. `whole`: not to be shortened.
    Program { file: File, whole: bool },
}

impl<'a> CellPrograms<'a> {
    /// None yet.
    pub fn new(context: &'a Context<'a>, surroundings: Surroundings) -> Result<Self, WorkloadError> {
        let Surroundings { names, environments, users } = surroundings;
        let programs = Some(Programs::new()?);
        let mut made = Self {
            context,
            environments,
            users,
            homes: None,
            unnamed: None,
            not_own: Vec::new(),
            programs,
            kept: Vec::new(),
        };
        let Some(names) = names else { return Ok(made) };
        let kept = made.machines_own();
        let home = |host| context.hosts.homes.home(host, &names, &kept);
        match home(0).and_then(|client| Ok([client, home(1)?])) {
            Ok(homes) => {
                made.not_own = homes[0].shared().to_vec();
                made.homes = Some(homes);
            }
            Err(error) => made.unnamed = Some(error.to_string()),
        }
        Ok(made)
    }

    /// Notes for readers about incomplete hosts.
    pub fn notes(&self) -> impl Iterator<Item = Warning> {
        let unnamed = self.unnamed.as_deref().map(Warning::host_names_missing);
        let shared = (!self.not_own.is_empty()).then(|| Warning::host_files_shared(&self.not_own.join(", ")));
        unnamed.into_iter().chain(shared)
    }

    /// Users look here for their programs' output. In virtual time the cell's own files alone come back, and these are
    /// mounted.
    fn machines_own(&self) -> Vec<PathBuf> {
        if self.context.virtual_time {
            return Vec::new();
        }
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let places = [std::env::current_dir().ok(), home, Some(std::env::temp_dir())];
        places.into_iter().flatten().chain(self.context.output.map(Path::to_owned)).collect()
    }

    /// The running programs.
    pub fn running(&mut self) -> Result<&mut Programs, HostError> {
        self.programs.as_mut().ok_or_else(|| HostError::unsupported("cannot use a program", "all have been ended"))
    }

    /// Starts one end's program. Errors written to a pipe are kept, and searched.
    pub fn start(
        &mut self,
        role: Role,
        arguments: &[String],
        streams: Streams,
        search: Option<&Arc<LogSearch>>,
    ) -> Result<Running, WorkloadError> {
        let keys = self.context.keys_for_program(self.users.of_role(role).as_ref())?;
        let id = self.launch(role, arguments, streams, keys)?;
        let (input, output, errors) = self.running()?.pipes(id);
        if let Some(errors) = errors {
            self.keep(role, "err", errors, search)?;
        }
        Ok(Running { id, role, input, output })
    }

    fn launch(
        &mut self,
        role: Role,
        arguments: &[String],
        streams: Streams,
        keys: Vec<(String, OsString)>,
    ) -> Result<ProgramId, HostError> {
        let (hosts, cpus) = (self.context.hosts, &self.context.testbed.cpus);
        let (namespace, cpus) = match role {
            Role::Client => (&hosts.client, cpus.client()),
            Role::Server => (&hosts.server, cpus.server()),
        };
        let user = self.users.of_role(role).as_ref();
        let own = self.environments.of_role(role).iter().map(|(name, value)| (name.clone(), value.into()));
        // The caller's value counts.
        let of_user = user.iter().flat_map(|user| user.environment());
        let environment = of_user.chain(keys).chain(own).collect();
        let home = self.homes.as_ref().map(|homes| &homes[usize::from(role == Role::Server)]);
        let launch = Launch { namespace, cpus, arguments, environment, user, home };
        let programs = self.programs.as_mut();
        let ended = || HostError::unsupported("cannot use a program", "all have been ended");
        programs.ok_or_else(ended)?.start(launch, streams)
    }

    /// Likewise, with all its output in the cell's files, or a client with the caller's streams. `sign`: maybe in
    /// its output.
    pub fn start_alone(
        &mut self,
        role: Role,
        arguments: &[String],
        mut sign: Option<&mut Sign>,
    ) -> Result<ProgramId, WorkloadError> {
        let context = self.context;
        let search = sign.as_ref().and_then(|sign| sign.log().cloned());
        let is_client = role == Role::Client;
        if let Some(given) = context.client_streams.filter(|_| is_client) {
            return Ok(self.start(role, arguments, given.open()?, None)?.id);
        }
        let whole = is_client && context.client_whole;
        let mut files = Vec::new();
        let mut stream = |kind: &str| match self.file(role, &format!(".{kind}")) {
            None if search.is_some() => Ok(Stdio::piped()),
            None => Ok(Stdio::null()),
            Some(_) if !context.virtual_time && !whole => Ok(Stdio::piped()),
            Some(path) => {
                let failed = |cause| HostError::new(format!("cannot write {}", path.display()), cause);
                let file = kept_output::create(&path).map_err(failed)?;
                let own = file.try_clone().map_err(failed)?;
                if let Some(sign) = &mut sign {
                    sign.search_in(&path);
                }
                files.push(Kept { role, path: Some(path), writer: Writer::Program { file, whole } });
                Ok::<_, HostError>(own.into())
            }
        };
        let streams = Streams {
            input: Stdio::null(),
            output: stream("out")?,
            errors: stream("err")?,
            foreground: false,
            largest_file: context.virtual_time.then_some(LARGEST_FILE),
        };
        let mut running = self.start(role, arguments, streams, search.as_ref())?;
        if running.output.is_some() {
            self.keep_output(&mut running, search.as_ref())?;
        }
        self.kept.extend(files);
        Ok(running.id)
    }

    /// Keeps a program's output, and searches it.
    pub fn keep_output(&mut self, running: &mut Running, search: Option<&Arc<LogSearch>>) -> Result<(), WorkloadError> {
        let Some(output) = running.output.take() else {
            return Err(HostError::unsupported("cannot read what a program writes", "its output is gone").into());
        };
        self.keep(running.role, "out", output, search)
    }

    fn keep(
        &mut self,
        role: Role,
        kind: &str,
        stream: impl Read + Send + 'static,
        search: Option<&Arc<LogSearch>>,
    ) -> Result<(), WorkloadError> {
        let path = self.file(role, &format!(".{kind}"));
        let failed = |error| HostError::new("cannot keep what a program writes", error);
        let log = Log::start(stream, path.clone(), search.cloned()).map_err(failed)?;
        self.kept.push(Kept { role, path, writer: Writer::Log(log) });
        Ok(())
    }

    /// For a flow beside another workload: asks a client to end with its flow.
    pub fn end_with_flow(&mut self, client: ProgramId) -> Result<(), HostError> {
        if let Some(ending) = self.context.ending {
            ending.watch(Box::new(self.running()?.stopper(client)?));
        }
        Ok(())
    }

    /// Waits until a program has written something, or has ended.
    pub fn hear(&mut self, running: &mut Running, buffer: &mut [u8], limit: Duration) -> Result<Heard, HostError> {
        match &mut running.output {
            Some(output) => self.running()?.hear(running.id, output, buffer, limit),
            None => Ok(Heard::End),
        }
    }

    /// Whether somebody waits for clients at one end's host.
    fn is_listening(&self, role: Role, carriers: &[Carrier], port: u16) -> Result<bool, HostError> {
        let hosts = self.context.hosts;
        let namespace = if role == Role::Client { &hosts.client } else { &hosts.server };
        namespace.run(|| Ok(is_open(carriers, port)))
    }

    /// Begins to count how long their threads run and wait; none where nothing can be seen of them.
    pub fn begin_times(&self) -> Option<ProgramTimes> {
        ProgramTimes::begin(self.programs.as_ref()?, &self.context.hosts.server).ok()
    }

    /// Ends all of them with everything they have started; their output is then in their files. Returns notes for
    /// readers of the result.
    pub fn end(&mut self) -> Vec<Warning> {
        // Only then nobody writes any more.
        self.programs = None;
        let warnings = self.kept.drain(..).filter_map(|Kept { role, path, writer }| {
            let path = path?;
            let end = role.name();
            let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let left_out = match writer {
                Writer::Log(log) => Ok(log.end().left_out),
                Writer::Program { mut file, whole } => {
                    let left_out = if whole { Ok(0) } else { kept_output::shorten(&mut file) };
                    left_out.and_then(|bytes| kept_output::put_back(&path, &mut file).map(|()| bytes))
                }
            };
            match left_out {
                Ok(bytes) => Warning::output_shortened(end, &file_name, bytes),
                Err(error) => Some(Warning::output_unreadable(end, &file_name, &error)),
            }
        });
        warnings.collect()
    }

    /// Likewise: one program's output tails, by stream, and its first file with output.
    pub fn end_with_words(&mut self, role: Role) -> (Vec<String>, Option<PathBuf>) {
        self.programs = None;
        let own: Vec<Kept> = self.kept.drain(..).filter(|kept| kept.role == role).collect();
        let file = own.iter().find_map(|kept| kept.path.clone());
        let words = own.into_iter().filter_map(|kept| match kept.writer {
            Writer::Log(log) => Some(log.end().words).filter(|words| !words.is_empty()),
            Writer::Program { .. } => None,
        });
        (words.collect(), file)
    }

    /// A path for one end in the cell's directory: "client" and an ending.
    pub fn file(&self, role: Role, ending: &str) -> Option<PathBuf> {
        Some(self.context.output?.join(format!("{}{ending}", role.name())))
    }
}

/// The ends of some programs, each with its output's tail: "the client program ended with exit status 1: no route; the
/// server program had ended before the client, with exit status 3: address in use". A server still running without
/// output is left out.
pub fn in_words(context: &Context<'_>, ends: [(Role, Option<String>); 2]) -> String {
    let sentences = ends.into_iter().filter_map(|(end, how)| {
        let (how, words) = (how?, output_tail(context.output, end.name()));
        let wrote = if words.is_empty() { String::new() } else { format!(": {words}") };
        let is_silent = words.is_empty() && how == server_in_words(None);
        (!is_silent).then(|| format!("the {} program {how}{wrote}", end.name()))
    });
    sentences.collect::<Vec<_>>().join("; ")
}

/// How a server had ended when its client did.
pub fn server_in_words(ended: Option<ExitStatus>) -> String {
    ended.map_or_else(
        || "was still running".into(),
        |status| format!("had ended before the client, with {}", status_in_words(status)),
    )
}

/// As [`end_in_words`], also for a program that exceeded its file limit.
pub fn status_in_words(status: ExitStatus) -> String {
    let words = end_in_words(status);
    if wrote_too_much(status) {
        return format!("{words}, which ends who writes more than 1 GB to a file in virtual time");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn who_wrote_too_much_is_told_why_it_was_ended() {
        assert_eq!(status_in_words(ExitStatus::from_raw(3 << 8)), "exit status 3");
        let too_much = "signal 25 (SIGXFSZ), which ends who writes more than 1 GB to a file in virtual time";
        assert_eq!(status_in_words(ExitStatus::from_raw(25)), too_much);
    }
}
