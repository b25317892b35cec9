//! A function's part of the work, by its name and its file. The names themselves are in `symbols.txt`.

use crosswind_host::Frame;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::LazyLock;

macro_rules! parts {
    ($($(#[$meta:meta])* $Part:ident $count:ident,)*) => {
        /// The purpose of a function's own time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Part { $($Part,)* }

        /// Samples by part.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
        pub struct Parts { $($(#[$meta])* pub(super) $count: u64,)* }

        impl Part {
            pub const ALL: &[Self] = &[$(Self::$Part,)*];

            /// As `symbols.txt` has it.
            fn find(name: &str) -> Option<Self> {
                match name { $(stringify!($count) => Some(Self::$Part),)* _ => None }
            }
        }

        impl Parts {
            pub const fn count(&mut self, part: Part) -> &mut u64 {
                match part { $(Part::$Part => &mut self.$count,)* }
            }
        }
    };
}

parts! {
    /// The kernel, on behalf of a thread. Its memory calls are allocation, and page faults belong to whoever met them.
    #[serde(rename = "system calls")]
    SystemCalls system_calls,
    /// WebSocket's masks (RFC 6455, section 5.3).
    Masking masking,
    /// The protocols' own work: frames, headers, streams.
    Framing framing,
    /// Handshakes, and the encryption of TLS and QUIC.
    #[serde(rename = "TLS")]
    Tls tls,
    /// Moving and clearing memory.
    Copying copying,
    /// Getting memory and giving it back.
    Allocation allocation,
    /// The reactor, the workload and its threads.
    Runtime runtime,
    /// Unknown.
    Other other,
}

/// Names with their parts.
type List = Vec<(&'static str, Part)>;

/// The lists in `symbols.txt`.
#[derive(Default)]
struct Symbols {
    modules: List,
    methods: List,
    crates: List,
    prefixes: List,
    functions: List,
    families: List,
}

static SYMBOLS: LazyLock<Symbols> = LazyLock::new(|| Symbols::read(include_str!("symbols.txt")));

impl Symbols {
    fn read(text: &'static str) -> Self {
        let mut symbols = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if symbols.read_line(line).is_none() {
                unreachable!("symbols.txt has a line that is no list: {line}");
            }
        }
        symbols
    }

    fn read_line(&mut self, line: &'static str) -> Option<()> {
        let (head, names) = line.split_once(':')?;
        let (kind, part) = head.split_once(' ')?;
        let part = Part::find(part)?;
        let list = match kind {
            "module" => &mut self.modules,
            "method" => &mut self.methods,
            "crate" => &mut self.crates,
            "prefix" => &mut self.prefixes,
            "function" => &mut self.functions,
            "family" => &mut self.families,
            _ => return None,
        };
        list.extend(names.split_whitespace().map(|name| (name, part)));
        Some(())
    }
}

fn find(list: &List, fits: impl Fn(&str) -> bool) -> Option<Part> {
    list.iter().find(|(name, _)| fits(name)).map(|(_, part)| *part)
}

/// The purpose of a function's own time. `None` for functions that serve their callers, as the standard library's.
pub fn part_of(frame: &Frame) -> Option<Part> {
    let function = frame.function.as_str();
    let method = function.rsplit("::").next().unwrap_or(function);
    let own = find(&SYMBOLS.methods, |name| method.starts_with(name))
        .or_else(|| find(&SYMBOLS.modules, |module| is_of_module(frame, module)));
    if own.is_some() {
        return own;
    }
    // bytes::bytes_mut::shared_v_drop: a buffer's last owner gives it back.
    if function.starts_with("bytes::") && method.contains("drop") {
        return Some(Part::Allocation);
    }
    match owner(frame) {
        Some(owner) => find(&SYMBOLS.crates, |name| name == owner),
        None => part_of_c_function(function),
    }
}

/// Whether a function is in a module of our transports: by its file, if it was inlined, or by its path.
fn is_of_module(frame: &Frame, module: &str) -> bool {
    let folder = format!("crates/transport/src/{module}");
    let file_begins = |rest: &str| rest.starts_with(".rs") || rest.starts_with('/');
    frame.file.split_once(&folder).is_some_and(|(_, rest)| file_begins(rest))
        || frame.function.contains(&format!("crosswind_transport::{}::", module.replace('/', "::")))
}

/// A function's crate: by its file for inlined ones, whose name is short.
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

fn part_of_c_function(function: &str) -> Option<Part> {
    if let Some(part) = find(&SYMBOLS.prefixes, |prefix| function.starts_with(prefix)) {
        return Some(part);
    }
    // __libc_send, __GI___writev, __memmove_avx_unaligned_erms, recv@@GLIBC_2.2.5
    let function = function.split('@').next().unwrap_or(function);
    let mut name = function.trim_start_matches('_');
    for prefix in ["GI_", "libc_", "rust_", "rdl_", "rg_"] {
        name = name.strip_prefix(prefix).unwrap_or(name).trim_start_matches('_');
    }
    let (first, rest) = name.split_once('_').unwrap_or((name, ""));
    // __memcpy_chk_fail ends the process.
    let of_family = |family: &str| family == first && !rest.starts_with("chk_fail");
    find(&SYMBOLS.functions, |function| function == name).or_else(|| find(&SYMBOLS.families, of_family))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
