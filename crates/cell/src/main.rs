//! `crosswind-cell`: one cell of an experiment, JSON in, JSON lines and Arrow out. See `docs/cell-protocol.md`.

use crosswind_cell::{
    Catalogue, Cell, CellError, ErrorKind, Event, check_cells, network, peer, run_cell, spawn, tell_losses,
    write_last_event, write_line,
};
use crosswind_host::{Backend, guest, open_files, privilege, probe, program};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use serde::Serialize;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{ExitCode, exit};
use std::sync::OnceLock;

const USAGE: &str = "usage: crosswind-cell [--check | --losses | --describe | --probe | --serve JSON | --call JSON | --listen JSON |\n    --watch JSON | --version] < cell.json\n\n\
    Runs one cell of an experiment: the cell as JSON on standard input, progress as JSON lines on standard output,\n\
    tables as files. --check only validates: it reads any number of cells, and prints each with every default filled\n\
    in, or why it is refused, one a line; --losses tells which packets a cell loses with\n\
    which seed; --describe prints everything that a cell can be; --probe prints what\n\
    this machine allows; --serve and --call run a transport's server or client alone (docs/cell-protocol.md, Peers);\n\
    --listen serves cells of other machines, --watch sends a message to such a server for each number on standard\n\
    input (docs/two-hosts.md).\n\
    Exit status: 0 ran, 1 could not run, 2 bad cell or usage, 130 interrupted.";

/// The first panic, in the library's words.
static FAULT: OnceLock<String> = OnceLock::new();

fn main() -> ExitCode {
    // A panic is a fault of this program; it is reported as an event like every other failure, not as a trace.
    std::panic::set_hook(Box::new(|panic| {
        // The first one is the cause; later ones follow from it.
        let _ = FAULT.set(panic.to_string());
    }));
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = std::panic::catch_unwind(|| obey(&arguments)).unwrap_or_else(|_| {
        let fault = FAULT.get().map(|fault| format!(" ({})", fault.replace('\n', " "))).unwrap_or_default();
        let message = format!("crosswind-cell failed in a way that it should not{fault}");
        Err(CellError::internal(message).hint("this is a fault of crosswind-cell: please report the cell that did it"))
    });
    result.unwrap_or_else(|error| {
        write_last_event(&Event::from(&error));
        ExitCode::from(error.exit_status())
    })
}

fn obey(arguments: &[&str]) -> Result<ExitCode, CellError> {
    match arguments {
        [] => run()?,
        ["--check"] => return check(),
        ["--losses"] => tell_losses(&read_input()?, &mut std::io::stdout().lock())?,
        ["--describe"] => print(&Catalogue::new())?,
        ["--probe"] => print(&probe())?,
        ["--version" | "-V"] => println!("crosswind-cell {}", env!("CARGO_PKG_VERSION")),
        ["--help" | "-h"] => println!("{USAGE}"),
        ["--serve", wanted] => peer::serve(wanted)?,
        ["--call", wanted] => peer::call(wanted)?,
        ["--listen", wanted] => {
            end_on_signals()?;
            end_with_the_reader()?;
            network::listen(wanted)?;
        }
        ["--watch", wanted] => {
            end_on_signals()?;
            end_with_the_reader()?;
            network::watch(wanted)?;
        }
        [program::INIT] => program::be_init(),
        [guest::GUEST] => {
            guest::be_guest();
            run()?;
        }
        _ => {
            let message = format!("unknown arguments: {}", arguments.join(" "));
            return Err(CellError::bad_cell(message).hint("crosswind-cell --help"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn run() -> Result<(), CellError> {
    let cell = Cell::from_json(&read_input()?)?;
    open_files::allow_many();
    // Both before any thread is started: threads inherit the user namespace and the blocked signals.
    if cell.path.backend != Backend::Network {
        privilege::acquire()?;
    }
    end_on_signals()?;
    end_with_the_reader()?;
    let mut output = std::io::stdout();
    let mut on_event = |event: &Event| write_line(&mut output, event).map_err(|cause| CellError::unheard(&cause));
    on_event(&Event::started(&cell.id))?;
    let result = run_cell(&cell, &mut on_event)?;
    on_event(&Event::Finished(Box::new(result)))
}

fn check() -> Result<ExitCode, CellError> {
    let all_accepted = check_cells(&read_input()?, &mut std::io::stdout().lock())?;
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::from(ErrorKind::BadCell.exit_status()) })
}

fn read_input() -> Result<String, CellError> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|e| {
        CellError::bad_cell(format!("cannot read the cell: {e}")).hint("give it as JSON on standard input, in UTF-8")
    })?;
    Ok(text)
}

fn print(value: &impl Serialize) -> Result<(), CellError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CellError::internal(e.to_string()))?;
    println!("{text}");
    Ok(())
}

/// Ends the process when nobody reads its events any more: the caller was killed, and nobody needs the result.
fn end_with_the_reader() -> Result<(), CellError> {
    spawn("reader", || {
        let output = std::io::stdout();
        let mut watched = [PollFd::new(output.as_fd(), PollFlags::empty())];
        // A pipe without a reader is an error to poll; a file or a terminal never is.
        while let Ok(_) | Err(Errno::EINTR) = poll(&mut watched, PollTimeout::NONE) {
            let seen = watched[0].revents().unwrap_or(PollFlags::empty());
            if seen.contains(PollFlags::POLLERR) {
                exit(ErrorKind::Interrupted.exit_status().into());
            }
            if !seen.is_empty() {
                return;
            }
        }
    })
    .map(drop)
}

/// Ends the process on SIGINT and SIGTERM. Nothing has to be cleaned up: everything made ends with the process.
fn end_on_signals() -> Result<(), CellError> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGINT);
    signals.add(Signal::SIGTERM);
    signals
        .thread_block()
        .map_err(|cause| CellError::new(ErrorKind::Host, format!("cannot handle signals: {cause}")))?;
    spawn("signals", move || {
        if let Ok(signal) = signals.wait() {
            let error = CellError::new(ErrorKind::Interrupted, format!("ended by {signal}"));
            write_last_event(&Event::from(&error));
            exit(error.exit_status().into());
        }
    })
    .map(drop)
}
