"""WebSocket by hand: handshakes and raw frames, right and wrong ones (RFC 6455, sections 4 and 5)."""

import base64
import contextlib
import hashlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Section 1.3."""

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
MASK = b"\x37\xfa\x21\x3d"
"""That of the examples in section 5.7."""


@dataclass(frozen=True)
class Frame:
    """One frame. `mask` is set on every frame of a client and on none of a server (section 5.1)."""

    opcode: int
    payload: bytes = b""
    fin: bool = True
    rsv: int = 0
    mask: bytes | None = None
    # What the header says, if that is not the truth; and in how many bytes, if not in the fewest (section 5.2).
    claims: int | None = None
    length_bytes: int | None = None

    def encode(self) -> bytes:
        """As it goes over the wire."""
        length = len(self.payload) if self.claims is None else self.claims
        width = self.length_bytes
        if width is None:
            width = 0 if length <= 125 else 2 if length <= 0xFFFF else 8
        masked = 0x80 if self.mask is not None else 0
        first = (0x80 if self.fin else 0) | self.rsv << 4 | self.opcode
        if width == 0:
            head = struct.pack("!BB", first, masked | length)
        elif width == 2:
            head = struct.pack("!BBH", first, masked | 126, length)
        else:
            head = struct.pack("!BBQ", first, masked | 127, length)
        if self.mask is None:
            return head + self.payload
        return head + self.mask + masking(self.payload, self.mask)


def masking(payload: bytes, mask: bytes) -> bytes:
    """Masks or unmasks (section 5.3)."""
    return bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


def close_frame(code: int | None, reason: bytes = b"", mask: bytes | None = None) -> Frame:
    """A close frame; without a code it has no body (section 5.5.1)."""
    return Frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason, mask=mask)


class EndedError(Exception):
    """The other end closed the connection: with FIN, or with RST."""


class Wire:
    """One end of a WebSocket connection on a plain socket. The socket's timeout bounds every wait."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = b""

    @classmethod
    def connect(cls, address: str, deadline_s: float, path: str = "/") -> "Wire":
        """Opens a connection as a client and checks the answer (section 4.1)."""
        host, _, port = address.rpartition(":")
        wire = cls(socket.create_connection((host, int(port)), deadline_s))
        key = base64.b64encode(b"crosswind peers!").decode()
        wire.connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        status, headers = wire.head()
        assert status.split()[1] == "101", status
        assert headers["sec-websocket-accept"] == accept_of(key)
        assert headers["upgrade"].lower() == "websocket"
        assert "sec-websocket-extensions" not in headers, "none was offered"
        return wire

    def answer(self) -> str:
        """Answers a client's handshake (section 4.2.2) and returns the path it asked for."""
        request, headers = self.head()
        accept = accept_of(headers["sec-websocket-key"])
        self.connection.sendall(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
        )
        return request.split()[1]

    def head(self) -> tuple[str, dict[str, str]]:
        """The first line and the fields of an HTTP/1.1 message."""
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *fields = head.decode("latin-1").split("\r\n")
        pairs = (field.partition(":") for field in fields)
        return first, {name.strip().lower(): value.strip() for name, _, value in pairs}

    def more(self) -> None:
        """Reads what has come."""
        try:
            received = self.connection.recv(65536)
        except ConnectionResetError as error:
            raise EndedError("reset") from error
        if not received:
            raise EndedError("closed")
        self.buffer += received

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        while len(self.buffer) < size:
            self.more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def send(self, *frames: Frame | bytes) -> None:
        """Sends frames in one write. It is no error when the other end no longer reads them."""
        with contextlib.suppress(OSError):
            encoded = (frame if isinstance(frame, bytes) else frame.encode() for frame in frames)
            self.connection.sendall(b"".join(encoded))

    def receive(self) -> Frame:
        """The next frame."""
        first, second = self.take(2)
        length = second & 0x7F
        width = {126: 2, 127: 8}.get(length)
        if width is not None:
            length = int.from_bytes(self.take(width), "big")
        mask = self.take(4) if second & 0x80 else None
        payload = self.take(length)
        if mask is not None:
            payload = masking(payload, mask)
        return Frame(first & 0xF, payload, bool(first & 0x80), first >> 4 & 7, mask, length_bytes=width or 0)

    def frames(self) -> Iterator[Frame]:
        """Every frame until the connection ends."""
        try:
            while True:
                yield self.receive()
        except EndedError:
            return

    def message(self) -> tuple[int, bytes]:
        """The next message, put together from its fragments (section 5.4)."""
        opcode, payload = None, b""
        while True:
            frame = self.receive()
            if frame.opcode >= CLOSE:
                assert frame.opcode != CLOSE, f"closed with {close_code(frame)}"
                continue
            assert (frame.opcode == CONTINUATION) == (opcode is not None), frame
            opcode = frame.opcode if opcode is None else opcode
            payload += frame.payload
            if frame.fin:
                return opcode, payload

    def close(self) -> None:
        """Frees the socket."""
        self.connection.close()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def close_code(frame: Frame) -> int | None:
    """The code of a close frame, or None if it has no body."""
    return int.from_bytes(frame.payload[:2], "big") if frame.payload else None


def accept_of(key: str) -> str:
    """The answer to a key (section 4.2.2)."""
    return base64.b64encode(hashlib.sha1((key + GUID).encode(), usedforsecurity=False).digest()).decode()
