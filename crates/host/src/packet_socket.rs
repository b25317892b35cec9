//! Every IP packet sent and received by this machine (packet(7)), for captures at the ends of an existing network.

use crate::error::{HostError, Result};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The kernel's buffer until read, bytes.
const BUFFER: usize = 64 << 20;
/// The longest wait for a packet.
const WAIT_US: i64 = 100_000;
/// In a packet's address (`linux/if_packet.h`): this machine sent it.
const PACKET_OUTGOING: u8 = 4;
/// From the same file: packets counted, and those too many for the buffer.
const PACKET_STATISTICS: libc::c_int = 6;

/// Reads packets. Segments split or joined by the network card are whole (segmentation offload).
#[derive(Debug)]
pub struct PacketSocket(OwnedFd);

/// A packet's place in the buffer, and its known facts.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket {
    /// Its bytes in the buffer, from its IP header on.
    pub length: usize,
    /// Unix time, nanoseconds, by the kernel.
    pub at_ns: u64,
    /// This machine sent it.
    pub is_outgoing: bool,
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PacketSocket {
    /// Sees every packet in the calling thread's namespace from now on.
    pub fn open() -> Result<Self> {
        let failed = |cause| {
            HostError::new("cannot capture packets", cause)
                .hint("captures need root or the capability CAP_NET_RAW: run it with sudo, or leave --capture out")
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let all = socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll).map_err(failed)?;
        // With less the kernel may drop packets from the capture; they are counted.
        let _ = setsockopt(&all, sockopt::RcvBufForce, &BUFFER);
        setsockopt(&all, sockopt::ReceiveTimestampns, &true).map_err(failed)?;
        setsockopt(&all, sockopt::ReceiveTimeout, &TimeVal::new(0, WAIT_US)).map_err(failed)?;
        Ok(Self(all))
    }

    /// The next packet, in `buffer`; none within a tenth of a second. An excess is cut off.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<CapturedPacket>> {
        let mut control = nix::cmsg_space!(libc::timespec);
        let mut parts = [IoSliceMut::new(buffer)];
        let message = match recvmsg::<LinkAddr>(self.0.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty()) {
            Ok(message) => message,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => return Ok(None),
            Err(cause) => return Err(HostError::new("cannot capture packets", cause)),
        };
        let time = message.cmsgs().ok().and_then(|mut all| {
            all.find_map(|one| if let ControlMessageOwned::ScmTimestampns(time) = one { Some(time) } else { None })
        });
        Ok(Some(CapturedPacket {
            length: message.bytes,
            at_ns: time.map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64),
            is_outgoing: message.address.is_some_and(|address| address.pkttype() == PACKET_OUTGOING),
        }))
    }

    /// How many packets did not fit into the kernel's buffer since the last call.
    pub fn missed(&self) -> u64 {
        let mut counts = [0_u32; 2];
        let mut length = std::mem::size_of_val(&counts) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into the two numbers, which have as many.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                counts.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result == 0 { counts[1].into() } else { 0 }
    }
}
