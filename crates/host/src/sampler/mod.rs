//! Samples the hosts' threads by processor time.
//!
//! Each entering thread has a timer on its own CPU clock, and gets the timer's signal itself. A sample is the thread's
//! stack when the signal arrives: a list of addresses. Sleeping threads, and threads that did not enter, are not
//! sampled. The kernel checks such timers at its ticks, every 1 ms or 4 ms depending on its build, and sends the signal
//! when the thread leaves the kernel, so a long system call delays it. Each sample therefore stands for the CPU time
//! since the sample before it. Work in the kernel appears in the C library's function that called the kernel.
//!
//! The signal handler neither allocates nor locks, and its only system call reads the time. Names are looked up
//! afterwards.

mod unwind;

use crate::clock::thread_cpu_ns;
use crate::error::{HostError, Result};
use crosswind_path::Side;
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::cell::Cell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{Ordering, compiler_fence};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use unwind::{Modules, Registers, Walker};

/// The requested CPU time between samples.
const INTERVAL: Duration = Duration::from_millis(1);
/// Innermost stack frames recorded.
const MAX_FRAMES: usize = 24;
/// Size of a thread's recording, in words of 8 bytes: at least 20,000 samples.
const RECORDING_WORDS: usize = 1 << 19;

thread_local! {
    /// This thread's recording, if sampled. Neither lazily initialised nor dropped, so a signal handler may read it.
    static RECORDING: Cell<*mut Recording> = const { Cell::new(null_mut()) };
}

/// Samples entering threads.
#[derive(Debug)]
pub struct Sampler {
    modules: Arc<Modules>,
    hosts: Mutex<[Samples; 2]>,
}

/// A host's threads' samples.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Those threads' CPU time while sampled.
    pub cpu_ns: u64,
    /// Their samples.
    pub samples: Vec<Sample>,
    /// Samples too many for the recording.
    pub missed: u64,
}

/// A thread's activity at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The thread's CPU time since its previous sample.
    pub cpu_ns: u64,
    /// Stack addresses, the innermost first; [`Sampler::frames`] finds their functions.
    pub stack: Vec<u64>,
}

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name, empty if unknown; without generic arguments where it was inlined.
    pub function: String,
    /// Its source file, empty if unknown.
    pub file: String,
}

impl Sampler {
    /// A sample's CPU time if the kernel's ticks are frequent enough.
    pub const INTERVAL_NS: u64 = INTERVAL.as_nanos() as u64;

    /// Prepares to sample.
    ///
    /// # Errors
    /// On processors other than `x86_64`, and when the signal cannot be handled.
    pub fn start() -> Result<Self> {
        if !unwind::SUPPORTED {
            return Err(HostError::unsupported("cannot sample CPU time", "it is written for x86_64"));
        }
        let sampler = Self { modules: Arc::new(Modules::loaded()), hosts: Mutex::default() };
        let action = SigAction::new(SigHandler::SigAction(handle_sample), SaFlags::SA_RESTART, SigSet::empty());
        // SAFETY: the handler is signal-safe: it touches only its thread's `Recording` and stack. It is never removed,
        // because a pending signal would then end the process.
        unsafe { sigaction(Signal::SIGPROF, &action) }
            .map_err(|e| HostError::new("cannot sample CPU time: cannot handle SIGPROF", e))?;
        Ok(sampler)
    }

    /// Samples the calling thread, for the sending host of direction `side`, until the guard is dropped.
    ///
    /// # Errors
    /// When the thread cannot have a timer.
    pub fn enter(&self, side: Side) -> Result<SampledThread<'_>> {
        let failed = |e| HostError::new("cannot sample CPU time: cannot set a timer", e);
        let recording = Box::new(Recording {
            modules: Arc::clone(&self.modules),
            walker: Walker::new(),
            stack_top: unwind::stack_top(),
            words: vec![0; RECORDING_WORDS],
            used: 0,
            missed: 0,
            last_ns: thread_cpu_ns(),
        });
        let notify = SigevNotify::SigevThreadId {
            signal: Signal::SIGPROF,
            thread_id: nix::unistd::gettid().as_raw(),
            si_value: 0,
        };
        let mut timer = Timer::new(ClockId::CLOCK_THREAD_CPUTIME_ID, SigEvent::new(notify)).map_err(failed)?;
        let expiration = Expiration::Interval(INTERVAL.into());
        timer.set(expiration, TimerSetTimeFlags::empty()).map_err(failed)?;
        let recording = NonNull::from(Box::leak(recording));
        RECORDING.set(recording.as_ptr());
        Ok(SampledThread { sampler: self, side, recording, timer: Some(timer), began_ns: thread_cpu_ns() })
    }

    /// The client's and the server's samples. Threads still sampled do not count yet.
    pub fn samples(&self) -> [Samples; 2] {
        self.hosts.lock().map(|mut hosts| std::mem::take(&mut *hosts)).unwrap_or_default()
    }

    /// The functions at a stack address, the innermost first: inlined ones, then the containing one. None if unknown.
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut frames = Vec::new();
        // Like every return address it is behind the instruction that counts; `resolve` looks before it.
        backtrace::resolve(address as *mut _, |symbol| {
            frames.push(Frame {
                function: symbol.name().map(|name| format!("{name:#}")).unwrap_or_default(),
                file: symbol.filename().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default(),
            });
        });
        if frames.iter().all(|frame| frame.function.is_empty()) {
            frames = self.memory_function(address).into_iter().collect();
        }
        frames
    }

    /// The C library's memory function at an address. The library has several variants for different processors, and a
    /// stripped library names none.
    fn memory_function(&self, address: u64) -> Option<Frame> {
        let known: [(*const (), &str); 4] = [
            (libc::memcpy as *const (), "memcpy"),
            (libc::memmove as *const (), "memmove"),
            (libc::memset as *const (), "memset"),
            (libc::memcmp as *const (), "memcmp"),
        ];
        let (start, end) = self.modules.function(address - 1)?;
        let (_, name) = known.iter().find(|(entry, _)| (start..end).contains(&(*entry as u64)))?;
        Some(Frame { function: (*name).to_owned(), file: String::new() })
    }
}

/// A thread sampled until this is dropped.
#[derive(Debug)]
pub struct SampledThread<'a> {
    sampler: &'a Sampler,
    side: Side,
    recording: NonNull<Recording>,
    timer: Option<Timer>,
    began_ns: u64,
}

impl Drop for SampledThread<'_> {
    fn drop(&mut self) {
        let cpu_ns = thread_cpu_ns().saturating_sub(self.began_ns);
        drop(self.timer.take());
        RECORDING.set(null_mut());
        // The handler runs on this thread only, and from here on does not find the recording.
        compiler_fence(Ordering::SeqCst);
        // SAFETY: it comes from `Box::leak` in `enter`, and nothing else refers to it any more.
        let recording = unsafe { Box::from_raw(self.recording.as_ptr()) };
        if let Ok(mut hosts) = self.sampler.hosts.lock() {
            let samples = &mut hosts[self.side as usize];
            samples.cpu_ns += cpu_ns;
            samples.missed += recording.missed;
            samples.samples.extend(recording.samples());
        }
    }
}

#[derive(Debug)]
struct Recording {
    modules: Arc<Modules>,
    walker: Walker,
    /// The end of the thread's stack.
    stack_top: u64,
    /// For each sample: the CPU time since the previous sample, the number of frames, and their addresses.
    words: Vec<u64>,
    used: usize,
    missed: u64,
    /// The thread's CPU time at the last sample.
    last_ns: u64,
}

impl Recording {
    fn samples(&self) -> impl Iterator<Item = Sample> {
        let mut rest = &self.words[..self.used];
        std::iter::from_fn(move || {
            let (&[cpu_ns, length], after) = rest.split_first_chunk()?;
            let (stack, after) = after.split_at_checked(length as usize)?;
            rest = after;
            Some(Sample { cpu_ns, stack: stack.to_vec() })
        })
    }

    fn record(&mut self, mut registers: Registers) {
        let Some(place) = self.words.get_mut(self.used..self.used + 2 + MAX_FRAMES) else {
            self.missed += 1;
            return;
        };
        let (head, stack) = place.split_at_mut(2);
        let now_ns = thread_cpu_ns();
        let lowest = registers.stack_pointer();
        // The interrupted instruction's address is moved by one, to lie behind the instruction that counts, like the
        // return addresses after it.
        stack[0] = registers.instruction() + 1;
        let mut length = 1;
        while length < MAX_FRAMES {
            let at = stack[length - 1] - 1;
            if self.walker.step(&self.modules, at, &mut registers, lowest..self.stack_top).is_none() {
                break;
            }
            stack[length] = registers.instruction();
            length += 1;
        }
        head.copy_from_slice(&[now_ns - self.last_ns, length as u64]);
        self.last_ns = now_ns;
        self.used += 2 + length;
    }
}

/// Records its thread's activity when the signal arrives.
extern "C" fn handle_sample(_signal: libc::c_int, _info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let recording = RECORDING.get();
    if recording.is_null() {
        return;
    }
    // SAFETY: the kernel hands over the interrupted thread's registers (SA_SIGINFO).
    let registers = unsafe { Registers::of_context(context.cast()) };
    // SAFETY: it lives until `RECORDING` is null again, and only this handler uses it until then; SIGPROF is blocked while
    // it is handled.
    unsafe { (*recording).record(registers) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[inline(never)]
    fn burn_processor_time(ns: u64) -> u64 {
        let until = thread_cpu_ns() + ns;
        let mut value = 1_u64;
        while thread_cpu_ns() < until {
            for _ in 0..100_000 {
                value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        }
        value
    }

    fn sampled(name: &str, work: impl Fn() + Sync) -> (Sampler, [Samples; 2]) {
        let sampler = Sampler::start().unwrap();
        std::thread::scope(|scope| {
            let sampler = &sampler;
            let work = &work;
            let thread = std::thread::Builder::new().name(name.into());
            thread
                .spawn_scoped(scope, move || {
                    let _sampled = sampler.enter(Side::Forward).unwrap();
                    work();
                })
                .unwrap();
        });
        let samples = sampler.samples();
        (sampler, samples)
    }

    fn names(sampler: &Sampler, stack: &[u64]) -> Vec<String> {
        stack.iter().flat_map(|&address| sampler.frames(address)).map(|frame| frame.function).collect()
    }

    #[test]
    fn a_busy_function_is_found_with_its_callers() {
        // 100 ticks even where there are only 100 a second.
        let (sampler, [client, server]) = sampled("client", || {
            black_box(burn_processor_time(1_000_000_000));
        });
        assert!(client.cpu_ns >= 1_000_000_000);
        assert!(!client.samples.is_empty());
        assert!(client.samples.iter().map(|sample| sample.cpu_ns).sum::<u64>() <= client.cpu_ns);
        assert!(server.samples.is_empty());
        let burning = client.samples.iter().filter(|sample| {
            let names = names(&sampler, &sample.stack);
            let within = |what: &str| names.iter().any(|name| name.contains(what));
            within("burn_processor_time") && within("busy_function_is_found")
        });
        assert!(burning.count() * 2 > client.samples.len(), "{:?}", names(&sampler, &client.samples[0].stack));
    }

    #[test]
    fn copying_is_distinguished_from_its_caller() {
        let (from, into) = (vec![1_u8; 1 << 24], Mutex::new(vec![0_u8; 1 << 24]));
        let (sampler, [client, _]) = sampled("client", || {
            let until = thread_cpu_ns() + 500_000_000;
            let mut into = into.lock().unwrap();
            while thread_cpu_ns() < until {
                black_box(&mut into[..]).copy_from_slice(black_box(&from));
            }
        });
        let copying = client.samples.iter().filter(|sample| {
            names(&sampler, &sample.stack)
                .first()
                .is_some_and(|name| name.contains("memcpy") || name.contains("memmove"))
        });
        assert!(copying.count() * 2 > client.samples.len());
    }

    #[test]
    fn functions_on_memory_are_known_without_symbols() {
        let sampler = Sampler::start().unwrap();
        let inside = libc::memset as *const () as u64 + 1;
        assert_eq!(sampler.memory_function(inside).map(|frame| frame.function).as_deref(), Some("memset"));
        assert_eq!(sampler.memory_function(1), None);
    }

    #[test]
    fn a_thread_that_sleeps_has_no_samples() {
        let (_, [client, _]) = sampled("client", || std::thread::sleep(Duration::from_millis(50)));
        // A tick may fall into the moment of waking up.
        assert!(client.samples.len() <= 1 + client.cpu_ns as usize / INTERVAL.as_nanos() as usize);
    }

    #[test]
    fn a_thread_can_enter_again() {
        let sampler = Sampler::start().unwrap();
        for _ in 0..2 {
            drop(sampler.enter(Side::Reverse).unwrap());
        }
        assert!(sampler.samples()[1].cpu_ns > 0);
    }
}
