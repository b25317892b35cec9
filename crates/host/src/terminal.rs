//! Programs' process groups, and the terminal for one in its foreground.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::{Pid, getpid, isatty, setpgid, tcsetpgrp};
use std::io;
use std::os::fd::BorrowedFd;

/// Gives the calling process its own process group: `kill 0`, scripts' usual end, must not end the cell.
///
/// Only async-signal-safe calls: it runs between fork and exec.
pub fn leave_group() -> io::Result<()> {
    Ok(setpgid(Pid::from_raw(0), Pid::from_raw(0))?)
}

/// Gives the calling process's group the terminal among its standard streams. Likewise.
pub fn take_terminal() -> io::Result<()> {
    // A background process that takes the terminal is stopped by this signal, unless it has blocked it.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTTOU);
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&stop), None)?;
    for number in 0..=libc::STDERR_FILENO {
        // SAFETY: the standard streams stay open until exec.
        let stream = unsafe { BorrowedFd::borrow_raw(number) };
        if isatty(stream).unwrap_or(false) && tcsetpgrp(stream, getpid()).is_ok() {
            break;
        }
    }
    Ok(())
}
