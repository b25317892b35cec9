//! A toy: TCP under another name.

use crate::tcp::Tcp;
use crate::{About, Call, Connecting, Listener, Settings, Transport};
use std::net::SocketAddr;
use std::time::Duration;

/// The transport `toy`.
pub struct Toy;

impl Transport for Toy {
    fn about(&self) -> About {
        About { name: "toy", summary: "TCP under another name.", ..Tcp.about() }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Tcp.listen(address, settings)
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Tcp.connect(server, settings, timeout)
    }
}
