//! `crosswind-cell`: one cell of an experiment, JSON in, JSON lines and Arrow out. See `docs/cell-protocol.md`.

use crosswind_cell::{Cell, CellError, Event, EventWriter, peer, run_cell, write_event};
use crosswind_host::{privilege, probe, program};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{ExitCode, exit};
use std::sync::OnceLock;

const USAGE: &str = "usage: crosswind-cell [--check | --probe | --serve JSON | --call JSON | --version] < cell.json\n\n\
    Runs one cell of an experiment: the cell as JSON on standard input, progress as JSON lines on standard output,\n\
    tables as files. --check only validates and prints the cell with every default filled in; --probe prints what\n\
    this machine allows; --serve and --call run a transport's server or client alone (docs/cell-protocol.md, Peers).\n\
    Exit status: 0 ran, 1 could not run, 2 bad cell or usage, 130 interrupted.";

/// The first panic, in the library's words.
static FAULT: OnceLock<String> = OnceLock::new();

fn main() -> ExitCode {
    // A panic is a fault of ours; it is told as an event like every other failure, not as a trace.
    std::panic::set_hook(Box::new(|panic| {
        // The first one is the cause; later ones follow from it.
        let _ = FAULT.set(panic.to_string());
    }));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result =
        std::panic::catch_unwind(|| match arguments[..] {
            [] => run(),
            ["--check"] => check(),
            ["--probe"] => print(&serde_json::to_value(probe()).unwrap_or_default()),
            ["--version" | "-V"] => {
                println!("crosswind-cell {}", env!("CARGO_PKG_VERSION"));
                Ok(())
            }
            ["--help" | "-h"] => {
                println!("{USAGE}");
                Ok(())
            }
            ["--serve", wanted] => peer::serve(wanted),
            ["--call", wanted] => peer::call(wanted),
            [program::INIT] => program::be_init(),
            _ => Err(CellError::bad_cell(format!("unknown arguments: {}", arguments.join(" ")))
                .hint("crosswind-cell --help")),
        });
    let result =
        result.unwrap_or_else(|_| Err(CellError::new("internal", "crosswind-cell failed in a way that it should not")));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(mut error) => {
            if error.kind == "internal" {
                let fault = FAULT.get().map(|fault| format!(" ({})", fault.replace('\n', " ")));
                error.message.push_str(&fault.unwrap_or_default());
                error.hint = Some("this is a fault of crosswind-cell: please report the cell that did it".into());
            }
            write_event(&Event::Error(&error));
            ExitCode::from(error.exit_status())
        }
    }
}

fn run() -> Result<(), CellError> {
    let cell = read_cell()?;
    // Both before any thread is started: threads inherit the user namespace and the blocked signals.
    privilege::acquire()?;
    end_on_signals()?;
    end_with_the_reader()?;
    let mut events = EventWriter::new(std::io::stdout());
    let mut tell = |event: &Event<'_>| {
        // Nobody listens any more: nobody needs the result.
        events.write(event).map_err(|e| CellError::new("interrupted", format!("cannot write an event: {e}")))
    };
    tell(&Event::Started { id: &cell.id })?;
    let result = run_cell(&cell, &mut tell)?;
    tell(&Event::Finished(&result))
}

fn check() -> Result<(), CellError> {
    let cell = read_cell()?;
    print(&serde_json::to_value(cell).map_err(|e| CellError::new("internal", e.to_string()))?)
}

fn read_cell() -> Result<Cell, CellError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| {
        CellError::bad_cell(format!("cannot read the cell: {e}")).hint("give it as JSON on standard input, in UTF-8")
    })?;
    Cell::from_json(&text)
}

fn print(value: &serde_json::Value) -> Result<(), CellError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CellError::new("internal", e.to_string()))?;
    println!("{text}");
    Ok(())
}

/// Ends the process when nobody reads its events any more: the caller was killed, and nobody needs the result.
fn end_with_the_reader() -> Result<(), CellError> {
    std::thread::Builder::new()
        .name("reader".into())
        .spawn(|| {
            let output = std::io::stdout();
            let mut watched = [PollFd::new(output.as_fd(), PollFlags::empty())];
            // A pipe without a reader is an error to poll; a file or a terminal never is.
            while let Ok(_) | Err(Errno::EINTR) = poll(&mut watched, PollTimeout::NONE) {
                let told = watched[0].revents().unwrap_or(PollFlags::empty());
                if told.contains(PollFlags::POLLERR) {
                    exit(130);
                }
                if !told.is_empty() {
                    return;
                }
            }
        })
        .map(|_| ())
        .map_err(|e| CellError::new("host", format!("cannot start a thread: {e}")))
}

/// Ends the process on SIGINT and SIGTERM. Nothing has to be cleaned up: everything made ends with the process.
fn end_on_signals() -> Result<(), CellError> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    let failed = |e: nix::Error| CellError::new("host", format!("cannot handle signals: {e}"));
    signals.thread_block().map_err(failed)?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if let Ok(signal) = signals.wait() {
                let error = CellError::new("interrupted", format!("ended by {signal}"));
                write_event(&Event::Error(&error));
                exit(error.exit_status().into());
            }
        })
        .map(|_| ())
        .map_err(|e| CellError::new("host", format!("cannot start a thread: {e}")))
}
