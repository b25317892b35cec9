//! Real-time priority, locked memory, processors, timer slack; and how long a thread had to wait for a processor.

use crate::error::{HostError, Result};
use crate::privilege;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::{fs, io};

/// Below the kernel's own threads, and above every non-real-time thread.
const PRIORITY: i32 = 20;

/// Gives the calling thread real-time priority (`SCHED_FIFO`), where allowed.
pub fn raise_priority() -> bool {
    let parameter = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: pid 0 is the calling thread; `parameter` outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0 }
}

/// Keeps the process's memory from being paged out, if unlimited: a limit would make later allocations fail.
pub fn lock_memory() -> bool {
    let unlimited = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_MEMLOCK)
        .is_ok_and(|(soft, _)| soft == nix::sys::resource::RLIM_INFINITY);
    if !unlimited && !may_lock() {
        return false;
    }
    // Pages are locked when first touched: a thread's stack of 2 MB only ever has a few touched.
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault).is_ok()
}

fn may_lock() -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    // A user namespace's capability does not apply to memory locks.
    let own_namespace = fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !map.contains("4294967295"));
    !own_namespace && privilege::has_capabilities(CAP_IPC_LOCK)
}

/// Lets the calling thread's timers fire on time instead of up to 50 us late.
pub fn sharpen_timers() -> bool {
    nix::sys::prctl::set_timerslack(1).is_ok()
}

/// Keeps processors from falling asleep, if allowed, as long as the returned file is held: waking one up costs tens of
/// microseconds, and milliseconds in a virtual machine whose host has given its processor to others
/// (docs/decisions/0007; the kernel's PM quality of service: a tolerated latency of zero).
pub fn keep_processors_awake() -> Option<File> {
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
    file.write_all(&0_i32.to_ne_bytes()).ok()?;
    Some(file)
}

/// The process's allowed processors.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
}

/// `cpus` in the kernel's format for processor sets: hexadecimal 32-bit words, the highest first, with commas between.
pub fn mask(cpus: &[usize]) -> String {
    let mut words = vec![0_u32; cpus.iter().max().map_or(1, |highest| highest / 32 + 1)];
    for cpu in cpus {
        words[cpu / 32] |= 1 << (cpu % 32);
    }
    let text: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    let text = text.join(",");
    let short = text.trim_start_matches('0');
    if short.is_empty() { "0".to_owned() } else { short.to_owned() }
}

/// Keeps the calling thread on `cpus`.
pub fn pin(cpus: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).map_err(|e| HostError::new(format!("cannot use processor {cpu}"), e))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .map_err(|e| HostError::new(format!("cannot pin to processors {cpus:?}"), e))
}

/// The process's peak memory, bytes.
pub fn peak_memory_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.map(|kib| kib * 1024).ok_or_else(|| io::Error::other("/proc/self/status has no VmHWM"))
}

/// The calling thread's run time, and its wait for a processor while runnable, nanoseconds.
pub fn run_and_wait_ns() -> io::Result<(u64, u64)> {
    schedstat("/proc/thread-self/schedstat")
}

/// The same as `run_and_wait_ns`, for another thread of this process.
pub fn run_and_wait_ns_of(thread: i32) -> io::Result<(u64, u64)> {
    schedstat(&format!("/proc/self/task/{thread}/schedstat"))
}

/// The same for any thread, by its file's path.
pub(crate) fn schedstat(path: &str) -> io::Result<(u64, u64)> {
    let text = fs::read_to_string(path)?;
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(run), Some(wait)) => Ok((run, wait)),
        _ => Err(io::Error::other("schedstat is not two numbers")),
    }
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn processors_are_written_as_the_kernel_writes_them() {
        assert_eq!(mask(&[]), "0");
        assert_eq!(mask(&[0]), "1");
        assert_eq!(mask(&[0, 1, 3]), "b");
        assert_eq!(mask(&[31, 33]), "2,80000000");
    }
}
