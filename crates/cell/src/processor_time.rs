//! Where the processor time of client and server went, by what was running when it was sampled.
//!
//! A sample is a stack of functions. It belongs to the innermost one that is recognised: the time of `memmove` is copying,
//! whoever called it, and that of a hash table is whoever's it is.

use crosswind_host::{Frame, Sampler, Samples};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// What a sample may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    SystemCalls,
    Masking,
    Framing,
    Tls,
    Copying,
    Allocation,
    Runtime,
    Other,
}

impl Part {
    const ALL: [Self; 8] = [
        Self::SystemCalls,
        Self::Masking,
        Self::Framing,
        Self::Tls,
        Self::Copying,
        Self::Allocation,
        Self::Runtime,
        Self::Other,
    ];
}

/// Fewer stacks than this tell shares to no better than 10 %: the standard error of one half of 100 is 5.
const FEWEST_STACKS: usize = 100;

/// Samples by part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Parts {
    /// The kernel, on behalf of a thread. Its memory calls are allocation, and page faults belong to whoever met them.
    #[serde(rename = "system calls")]
    system_calls: u64,
    /// WebSocket's masks (RFC 6455, section 5.3).
    #[serde(rename = "masking")]
    masking: u64,
    /// The protocols' own work: frames, headers, streams.
    #[serde(rename = "framing")]
    framing: u64,
    /// Handshakes, and the encryption of TLS and QUIC.
    #[serde(rename = "TLS")]
    tls: u64,
    /// Moving and clearing memory.
    #[serde(rename = "copying")]
    copying: u64,
    /// Getting memory and giving it back.
    #[serde(rename = "allocation")]
    allocation: u64,
    /// The reactor, the workload and its threads.
    #[serde(rename = "runtime")]
    runtime: u64,
    /// Unknown.
    #[serde(rename = "other")]
    other: u64,
}

/// One host's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostProfile {
    samples: u64,
    cpu_ns: u64,
    parts: Parts,
}

/// Both hosts', as a result has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Profile {
    /// CPU time that a sample stands for. The kernel takes them less often: one that it takes counts for the CPU time since
    /// the one before.
    interval_ns: u64,
    client: HostProfile,
    server: HostProfile,
}

impl Profile {
    /// What `profiler` sampled; `None` when no thread was. With it, what is doubtful about it.
    pub fn new(profiler: &Sampler) -> (Option<Self>, Option<String>) {
        let [client, server] = profiler.samples();
        if client.cpu_ns == 0 && server.cpu_ns == 0 {
            return (None, None);
        }
        let missed = client.missed + server.missed;
        let stacks = client.samples.len() + server.samples.len();
        let mut known = HashMap::new();
        let mut sort =
            |address: u64| *known.entry(address).or_insert_with(|| profiler.frames(address).iter().find_map(part_of));
        let (client, server) = (host(&client, &mut sort), host(&server, &mut sort));
        // Functions that were inlined, masking among them, are known by the debug information only.
        let own = profiler.frames(Self::new as *const () as u64 + 1);
        let stripped = own.iter().all(|frame| frame.file.is_empty());
        let doubt = if missed > 0 {
            Some(format!("the profile is of the first part of the run: there was no room for {missed} stacks more"))
        } else if stripped {
            Some("crosswind-cell was stripped of its debug information: the profile cannot tell masking".to_owned())
        } else if stacks < FEWEST_STACKS {
            Some(format!("the profile rests on only {stacks} stacks: send more messages"))
        } else {
            None
        };
        (Some(Self { interval_ns: Sampler::INTERVAL_NS, client, server }), doubt)
    }
}

fn host(samples: &Samples, sort: &mut dyn FnMut(u64) -> Option<Part>) -> HostProfile {
    let mut spent_ns = Parts::default();
    for sample in &samples.samples {
        let part = sample.stack.iter().find_map(|&address| sort(address)).unwrap_or(Part::Other);
        *spent_ns.count(part) += sample.cpu_ns;
    }
    let (mut parts, mut all) = (Parts::default(), 0);
    for part in Part::ALL {
        let count = (*spent_ns.count(part) + Sampler::INTERVAL_NS / 2) / Sampler::INTERVAL_NS;
        *parts.count(part) = count;
        all += count;
    }
    HostProfile { samples: all, cpu_ns: samples.cpu_ns, parts }
}

impl Parts {
    const fn count(&mut self, part: Part) -> &mut u64 {
        match part {
            Part::SystemCalls => &mut self.system_calls,
            Part::Masking => &mut self.masking,
            Part::Framing => &mut self.framing,
            Part::Tls => &mut self.tls,
            Part::Copying => &mut self.copying,
            Part::Allocation => &mut self.allocation,
            Part::Runtime => &mut self.runtime,
            Part::Other => &mut self.other,
        }
    }
}

/// Functions of the C library that are the kernel's time, whatever underscores they carry.
const SYSTEM_CALLS: &[&str] = &[
    "accept",
    "accept4",
    "bind",
    "clock_nanosleep",
    "close",
    "connect",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_wait",
    "eventfd",
    "fcntl",
    "fcntl64",
    "futex",
    "getpeername",
    "getrandom",
    "getsockname",
    "getsockopt",
    "ioctl",
    "listen",
    "nanosleep",
    "open",
    "open64",
    "openat",
    "poll",
    "ppoll",
    "pread64",
    "pwrite64",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sched_yield",
    "select",
    "send",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "syscall",
    "syscall_cancel",
    "write",
    "writev",
];
const COPYING: &[&str] = &["memcpy", "memmove", "mempcpy", "memset", "bzero", "bcopy"];
const ALLOCATION: &[&str] = &[
    "aligned_alloc",
    "brk",
    "calloc",
    "cfree",
    "free",
    "int_free",
    "int_malloc",
    "int_realloc",
    "madvise",
    "malloc",
    "malloc_consolidate",
    "malloc_usable_size",
    "memalign",
    "mmap",
    "mmap64",
    "mprotect",
    "mremap",
    "munmap",
    "posix_memalign",
    "realloc",
    "sbrk",
];

const TLS: &[&str] = &[
    "crosswind_tls",
    "ring",
    "rustls",
    "rustls_pki_types",
    "subtle",
    "tokio_rustls",
    "untrusted",
    "webpki",
    "zeroize",
];
const FRAMING: &[&str] = &[
    "base64",
    "crosswind_socketio",
    "h2",
    "h3",
    "h3_datagram",
    "h3_quinn",
    "http",
    "http_body",
    "http_body_util",
    "httparse",
    "httpdate",
    "hyper",
    "hyper_util",
    "quinn_proto",
    "sha1",
    "tokio_tungstenite",
    "tungstenite",
    "web_transport_proto",
    "web_transport_quinn",
    "web_transport_trait",
];
const RUNTIME: &[&str] = &[
    "crosswind_cell",
    "crosswind_host",
    "crosswind_ledger",
    "crosswind_path",
    "crosswind_transport",
    "crosswind_units",
    "crosswind_workload",
    "futures",
    "futures_channel",
    "futures_core",
    "futures_util",
    "mio",
    "quinn",
    "quinn_udp",
    "socket2",
    "tokio",
    "tokio_util",
];

/// What a function's own time is. `None` for those that serve whoever calls them, the standard library's above all.
fn part_of(frame: &Frame) -> Option<Part> {
    let function = frame.function.as_str();
    let name = function.rsplit("::").next().unwrap_or(function);
    if name.starts_with("apply_mask") || is_ours(frame, "websocket/mask.rs", "websocket::mask::") {
        return Some(Part::Masking);
    }
    if is_ours(frame, "websocket/", "websocket::") {
        return Some(Part::Framing);
    }
    // bytes::bytes_mut::shared_v_drop: the last owner of a buffer gives it back.
    if function.starts_with("bytes::") && name.contains("drop") {
        return Some(Part::Allocation);
    }
    if let Some(owner) = owner(frame) {
        let has = |list: &[&str]| list.contains(&owner.as_str());
        let part = if has(TLS) {
            Part::Tls
        } else if has(FRAMING) {
            Part::Framing
        } else if has(RUNTIME) {
            Part::Runtime
        } else {
            return None;
        };
        return Some(part);
    }
    of_c(function)
}

/// Whether a function is from `file` of our transports, if it was inlined, or in `module`.
fn is_ours(frame: &Frame, file: &str, module: &str) -> bool {
    frame.file.contains(&format!("crates/transport/src/{file}"))
        || frame.function.contains(&format!("crosswind_transport::{module}"))
}

/// The crate that a function is from: its file tells for those that were inlined, of which the name is short.
fn owner(frame: &Frame) -> Option<String> {
    let path = frame.file.replace('\\', "/");
    if let Some((before, _)) = path.rsplit_once("/src/") {
        let directory = before.rsplit('/').next().unwrap_or(before);
        if before.contains("/library/") || before.starts_with("library/") {
            return Some("std".to_owned());
        }
        if before.ends_with(&format!("crates/{directory}")) {
            return Some(format!("crosswind_{directory}"));
        }
        // registry/src/…/tungstenite-0.30.0/src/…
        let name = directory.rsplit_once('-').filter(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()));
        if let Some((name, _)) = name {
            return Some(name.replace('-', "_"));
        }
    }
    let (first, _) = frame.function.split_once("::")?;
    // <tungstenite::protocol::WebSocket<S>>::read, <&mut h2::…>::poll
    let first = first.trim_start_matches(|c| "<&*".contains(c));
    let first = first.trim_start_matches("mut ").trim_start_matches("dyn ");
    Some(first.to_owned())
}

/// Functions that are not Rust's.
fn of_c(function: &str) -> Option<Part> {
    // ring_core_0_17_14__aes_hw_encrypt
    if function.starts_with("ring_core")
        || ["aesni_", "aes_gcm_", "gcm_", "GFp_"].iter().any(|p| function.starts_with(p))
    {
        return Some(Part::Tls);
    }
    // __libc_send, __GI___writev, __memmove_avx_unaligned_erms, recv@@GLIBC_2.2.5
    let function = function.split('@').next().unwrap_or(function);
    let mut name = function.trim_start_matches('_');
    for prefix in ["GI_", "libc_", "rust_", "rdl_", "rg_"] {
        name = name.strip_prefix(prefix).unwrap_or(name).trim_start_matches('_');
    }
    if SYSTEM_CALLS.contains(&name) || name.starts_with("syscall_cancel") {
        return Some(Part::SystemCalls);
    }
    if ALLOCATION.contains(&name) || ["alloc", "alloc_zeroed", "dealloc"].contains(&name) {
        return Some(Part::Allocation);
    }
    let (first, rest) = name.split_once('_').unwrap_or((name, ""));
    (COPYING.contains(&first) && !rest.starts_with("chk_fail")).then_some(Part::Copying)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_host::Sample;

    fn part(function: &str, file: &str) -> Option<Part> {
        part_of(&Frame { function: function.into(), file: file.into() })
    }

    const REGISTRY: &str = "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";

    #[test]
    fn functions_of_the_c_library_are_known_in_every_spelling() {
        for name in ["send", "__send", "__libc_send", "__GI___libc_recv", "epoll_wait", "writev", "recvmsg", "syscall"]
        {
            assert_eq!(part(name, ""), Some(Part::SystemCalls), "{name}");
        }
        assert_eq!(part("recv", "./socket/../sysdeps/unix/sysv/linux/recv.c"), Some(Part::SystemCalls));
        for name in ["memcpy", "__memmove_avx_unaligned_erms", "__memset_avx2_unaligned_erms", "memcpy@@GLIBC_2.14"] {
            assert_eq!(part(name, ""), Some(Part::Copying), "{name}");
        }
        for name in
            ["malloc", "_int_malloc", "__libc_free", "cfree", "realloc", "munmap", "__rust_alloc", "__rdl_dealloc"]
        {
            assert_eq!(part(name, ""), Some(Part::Allocation), "{name}");
        }
        assert_eq!(part("bytes::bytes_mut::shared_v_drop", ""), Some(Part::Allocation));
        assert_eq!(part("clock_gettime", ""), None);
        assert_eq!(part("memchr", ""), None);
    }

    #[test]
    fn crates_are_known_by_the_name_of_a_function() {
        assert_eq!(part("tungstenite::protocol::frame::frame::Frame::format_into_buf", ""), Some(Part::Framing));
        assert_eq!(part("<rustls::common_state::CommonState>::send_msg_encrypt", ""), Some(Part::Tls));
        assert_eq!(
            part("<&mut tokio::net::tcp::stream::TcpStream as tokio::io::AsyncRead>::poll_read", ""),
            Some(Part::Runtime)
        );
        assert_eq!(part("ring_core_0_17_14__aesni_gcm_encrypt", ""), Some(Part::Tls));
        assert_eq!(part("httparse::parse_headers_iter", ""), Some(Part::Framing));
        assert_eq!(part("<alloc::vec::Vec<u8> as bytes::buf::BufMut>::put_slice", ""), None);
        assert_eq!(part("core::ptr::drop_in_place<hyper::proto::Dispatcher>", ""), None);
    }

    #[test]
    fn crates_are_known_by_the_file_of_an_inlined_function() {
        let file = |rest: &str| format!("{REGISTRY}/{rest}");
        assert_eq!(
            part("apply_mask_fast32", &file("tungstenite-0.30.0/src/protocol/frame/mask.rs")),
            Some(Part::Masking)
        );
        assert_eq!(part("decode", &file("h3-0.0.8/src/frame.rs")), Some(Part::Framing));
        assert_eq!(part("poll_write", &file("quinn-proto-0.11.19/src/connection/mod.rs")), Some(Part::Framing));
        assert_eq!(part("poll", &file("tokio-rustls-0.26.4/src/common/mod.rs")), Some(Part::Tls));
        assert_eq!(part("receive_now", "crates/transport/src/tcp.rs"), Some(Part::Runtime));
        assert_eq!(part("apply", "/src/crosswind/crates/transport/src/websocket/mask.rs"), Some(Part::Masking));
        assert_eq!(part("write", "crates/transport/src/websocket/frame.rs"), Some(Part::Framing));
        assert_eq!(part("next<u32>", "/rustc/59807616e/library/core/src/slice/iter/macros.rs"), None);
    }

    #[test]
    fn a_sample_belongs_to_the_innermost_function_that_is_recognised() {
        let parts = |address: u64| match address {
            1 => None,
            2 => Some(Part::Masking),
            _ => Some(Part::Runtime),
        };
        let sample = |ms: u64, stack: &[u64]| Sample { cpu_ns: ms * 1_000_000, stack: stack.to_vec() };
        let samples = vec![sample(4, &[1, 2, 3]), sample(8, &[3, 2]), sample(1, &[1]), sample(2, &[])];
        let host = host(&Samples { cpu_ns: 16_000_000, samples, missed: 0 }, &mut |address| parts(address));
        assert_eq!((host.samples, host.cpu_ns), (15, 16_000_000));
        assert_eq!(host.parts, Parts { masking: 4, runtime: 8, other: 3, ..Parts::default() });
    }

    #[test]
    fn parts_are_written_with_the_names_that_people_read() {
        let text = serde_json::to_string(&Parts { tls: 2, ..Parts::default() }).unwrap();
        assert_eq!(
            text,
            r#"{"system calls":0,"masking":0,"framing":0,"TLS":2,"copying":0,"allocation":0,"runtime":0,"other":0}"#
        );
    }
}
