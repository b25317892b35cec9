//! tcp and udp with blocking calls.

use crate::{Result, Times};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

pub(crate) fn serve_tcp(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address)?;
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0];
        while stream.read(&mut message)? > 0 {
            stream.write_all(&message)?;
        }
    }
}

pub(crate) fn echo_tcp(address: SocketAddr, times: &mut Times) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reply = [0];
    for message in times.messages() {
        let sent = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut reply)?;
        times.received(sent, &reply, &message)?;
    }
    Ok(())
}

pub(crate) fn serve_udp(address: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(address)?;
    let mut message = [0];
    loop {
        let (length, client) = socket.recv_from(&mut message)?;
        socket.send_to(&message[..length], client)?;
    }
}

pub(crate) fn echo_udp(address: SocketAddr, times: &mut Times) -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(address)?;
    let mut reply = [0];
    for message in times.messages() {
        let sent = Instant::now();
        socket.send(&message)?;
        let length = socket.recv(&mut reply)?;
        times.received(sent, &reply[..length], &message)?;
    }
    Ok(())
}
