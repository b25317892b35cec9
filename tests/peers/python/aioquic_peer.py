"""QUIC, HTTP/3 and WebTransport over HTTP/3 from the package aioquic: what its server and its client share."""

import ssl
from typing import Any

from aioquic.quic.configuration import QuicConfiguration

ALPN = "crosswind"
"""Of Crosswind's transport "quic"."""
H3 = "h3"


def configuration(given: dict[str, Any], *, is_client: bool) -> QuicConfiguration:
    """For one of our transports, with room for datagrams."""
    made = QuicConfiguration(
        is_client=is_client,
        alpn_protocols=[ALPN if given["transport"].startswith("quic") else H3],
        max_datagram_frame_size=65536,
        idle_timeout=20,
    )
    if is_client:
        made.server_name = given["server_name"]
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(given["trust_path"])
    else:
        made.load_cert_chain(given["certificate_path"], given["key_path"])
    return made
