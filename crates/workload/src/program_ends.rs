//! The programs at the two ends of a path, what they write, and in words how they ended.

use crate::WorkloadError;
use crate::context::Context;
use crate::kept_output;
use crate::last_words::last_words;
use crate::log::Log;
use crate::warning::Warning;
use crosswind_host::HostError;
use crosswind_host::program::{Names, ProgramId, Programs, Streams, end_in_words, wrote_too_much};
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

/// What a file may have in virtual time, where a program that writes without end does so in no time at all.
const LARGEST_FILE: u64 = 1 << 30;

/// The programs of a cell, of which each is called by its end: `client`, `server`.
pub struct ProgramEnds<'a> {
    context: &'a Context<'a>,
    /// None once they were ended.
    programs: Option<Programs>,
    kept: Vec<Kept>,
}

/// One stream of a program, whose end this is, and the name of its file.
struct Kept {
    end: &'static str,
    name: String,
    writer: Writer,
}

/// Who writes the file.
enum Writer {
    /// A thread that reads what the program writes to a pipe.
    Log(Log),
    /// The program itself. In virtual time no other thread runs until it waits, which one that computes without end never does; what it
    /// has written is in the file then. `whole`: it is not to be shortened.
    Program { path: PathBuf, file: File, whole: bool },
}

impl<'a> ProgramEnds<'a> {
    /// None yet. They ask `resolver` for names of other hosts.
    pub fn new(context: &'a Context<'a>, resolver: Option<IpAddr>) -> Result<Self, WorkloadError> {
        let own = context.hosts;
        let hosts = [(own.server_address, "server"), (own.client_address, "client")];
        let names = Names { hosts, resolver, hidden: context.output.map(Path::to_owned) };
        Ok(Self { context, programs: Some(Programs::with_names(names)?), kept: Vec::new() })
    }

    /// The running programs.
    pub fn running(&mut self) -> Result<&mut Programs, HostError> {
        self.programs.as_mut().ok_or_else(|| HostError::unsupported("cannot use a program", "all have been ended"))
    }

    /// Starts the program of one end, with its output in files of the cell, or a client where the caller wants it.
    pub fn start(&mut self, end: &'static str, arguments: &[String]) -> Result<ProgramId, WorkloadError> {
        let (context, testbed) = (self.context, self.context.testbed);
        let is_client = end == "client";
        let (namespace, cpus) = if is_client {
            (&context.hosts.client, testbed.cpus.client())
        } else {
            (&context.hosts.server, testbed.cpus.server())
        };
        if let Some(given) = context.client_streams.filter(|_| is_client) {
            let environment = context.environment()?;
            return Ok(self.running()?.start(namespace, cpus, arguments, environment, given.open()?)?);
        }
        let is_whole = is_client && context.client_whole;
        let is_piped = !context.virtual_time && !is_whole;
        let paths = context.output.map(|directory| ["out", "err"].map(|kind| directory.join(format!("{end}.{kind}"))));
        let mut files = Vec::new();
        let mut stream = |number: usize| match &paths {
            None => Ok(Stdio::null()),
            Some(_) if is_piped => Ok(Stdio::piped()),
            Some(paths) => {
                let path = &paths[number];
                let failed = |cause| HostError::new(format!("cannot write {}", path.display()), cause);
                let file = kept_output::create(path).map_err(failed)?;
                let own = file.try_clone().map_err(failed)?;
                files.push((path.clone(), file));
                Ok::<_, HostError>(own.into())
            }
        };
        let streams = Streams {
            input: Stdio::null(),
            output: stream(0)?,
            errors: stream(1)?,
            foreground: false,
            largest_file: context.virtual_time.then_some(LARGEST_FILE),
        };
        let program = self.running()?.start(namespace, cpus, arguments, context.environment()?, streams)?;
        let (_, output, errors) = self.running()?.pipes(program);
        let Some([out, err]) = paths else { return Ok(program) };
        if let (Some(output), Some(errors)) = (output, errors) {
            let [output, errors] = [Log::start(output, Some(out.clone())), Log::start(errors, Some(err.clone()))];
            let failed = |cause| HostError::new("cannot keep what a program writes", cause);
            self.keep(end, &out, Writer::Log(output.map_err(failed)?));
            self.keep(end, &err, Writer::Log(errors.map_err(failed)?));
        }
        for (path, file) in files {
            self.keep(end, &path.clone(), Writer::Program { path, file, whole: is_whole });
        }
        Ok(program)
    }

    fn keep(&mut self, end: &'static str, path: &Path, writer: Writer) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.kept.push(Kept { end, name, writer });
    }

    /// Ends all of them with everything that they have started, and what they have written is in their files. Returns what a reader of the
    /// result should know.
    pub fn end(&mut self) -> Vec<Warning> {
        // Only then nobody writes any more.
        self.programs = None;
        let warnings = self.kept.drain(..).filter_map(|Kept { end, name, writer }| {
            let left_out = match writer {
                Writer::Log(log) => Ok(log.end().left_out),
                Writer::Program { path, mut file, whole } => {
                    let left_out = if whole { Ok(0) } else { kept_output::shorten(&mut file) };
                    left_out.and_then(|bytes| kept_output::put_back(&path, &mut file).map(|()| bytes))
                }
            };
            match left_out {
                Ok(bytes) => Warning::of_output(end, name, bytes),
                Err(error) => Some(Warning::OutputUnreadable { end, file: name, error: error.to_string() }),
            }
        });
        warnings.collect()
    }
}

/// How some programs ended, each with its last words: "the client program ended with exit status 1: no route; the server program had
/// ended before the client, with exit status 3: address in use". A server that was still running and wrote nothing is left out.
pub fn in_words(context: &Context<'_>, ends: [(&str, Option<String>); 2]) -> String {
    let sentences = ends.into_iter().filter_map(|(end, how)| {
        let (how, words) = (how?, last_words(context.output, end));
        let wrote = if words.is_empty() { String::new() } else { format!(": {words}") };
        let is_silent = words.is_empty() && how == server_in_words(None);
        (!is_silent).then(|| format!("the {end} program {how}{wrote}"))
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

/// As [`end_in_words`], and why a program ended that may not write more.
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
