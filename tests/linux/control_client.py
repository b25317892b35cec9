"""The first message of a client to `crosswind serve`, made without Crosswind; prints the answer.

Arguments: HOST, PORT and VERSION. TLS and its exporter are OpenSSL's, the proof is Python's own HMAC:
an implementation of docs/two-hosts.md by itself.
"""

import hashlib
import hmac
import json
import os
import socket
import sys

from OpenSSL import SSL

host, port, version = sys.argv[1:]
context = SSL.Context(SSL.TLS_CLIENT_METHOD)
context.set_verify(SSL.VERIFY_NONE)
context.set_alpn_protos([b"crosswind-control/1"])
connection = SSL.Connection(context, socket.create_connection((host, int(port)), timeout=10))
connection.setblocking(True)
connection.set_connect_state()
connection.do_handshake()
material = connection.export_keying_material(b"EXPORTER-crosswind-token", 32, None)
token = os.environ["CROSSWIND_TOKEN"].encode()
proof = hmac.new(token, b"crosswind client" + material, hashlib.sha256).digest()
hello = json.dumps({"say": "hello", "version": version, "proof": list(proof)}).encode()
connection.sendall(len(hello).to_bytes(4, "big") + hello)


def exactly(count: int) -> bytes:
    """So many bytes of what the server says."""
    data = b""
    while len(data) < count:
        data += connection.recv(count - len(data))
    return data


print(exactly(int.from_bytes(exactly(4), "big")).decode())
