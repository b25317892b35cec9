"""What the workloads of several streams do to the path: `multiplex` and `page`."""

import math

from crosswind.forecast.connection import EXCHANGE_NS, MOST_LOSS, host_of, loss_ns, room_of, sending_ns, way_of
from crosswind.forecast.traffic import (
    DELAYED_ACK_NS,
    HTTP_BYTES,
    YOUNG_ACKS,
    Traffic,
    framing_bytes,
    message_cpu_ns,
    opening,
    packets_of,
    resent,
    transport_of,
)
from crosswind.study.cells import Parameters

_OWN_CONNECTIONS = ("tcp", "http1", "https1")
"""Transports whose streams are connections (docs/cell-protocol.md)."""


def multiplex(parameters: Parameters) -> Traffic:
    """Streams that each send at a rate; every message comes back."""
    work, transport, host = parameters.workload, transport_of(parameters), host_of(parameters)
    messages, streams, rate_per_s = work.messages or 0, work.streams or 1, work.rate_per_s or 1
    connections = streams if transport.name in _OWN_CONNECTIONS else 1
    opened = opening(parameters)
    parts, size_bytes = packets_of(parameters, (work.size_bytes or 0) + framing_bytes(transport))
    packets = 2.0 * messages * parts
    if 1e9 * connections / (streams * rate_per_s) > DELAYED_ACK_NS:
        packets += messages  # As of an echo in an open loop.
    packets = resent(parameters, packets) + connections * (opened.packets + YOUNG_ACKS)
    lossy = bool(parameters.path.forward.loss or parameters.path.reverse.loss)
    last_ns = (float(work.timeout_ns or 0) if transport.datagram else host.timeout_ns) if lossy else 0.0
    return Traffic(
        wall_ns=opened.wall_ns + messages * 1e9 / (streams * rate_per_s) + host.rtt_ns + last_ns,
        packets=packets,
        bytes=2 * messages * size_bytes + max(0.0, packets - 2 * messages * parts) * room_of(parameters)[1],
        flat_out=False,
        cpu_ns=message_cpu_ns(transport, messages, packets) + connections * opened.cpu_ns,
    )


def page(parameters: Parameters) -> Traffic:
    """Pages, one after another, each on new connections: the HTML, then everything else at once.

    HTTP/1 has one request at a time on each connection, and so as many rounds as it takes for all files; the others ask
    for all at once. The connections share the link.
    """
    work, path, transport, host = parameters.workload, parameters.path, transport_of(parameters), host_of(parameters)
    made, count, lanes = work.page, work.count or 1, work.connections
    assert made is not None  # Every page has one.
    opened, down = opening(parameters), way_of(path.reverse)
    room, header_bytes = room_of(parameters)
    link_ns = down.link_ns(room + header_bytes, 1)
    files = made.scripts + made.images
    html = float(math.ceil((made.html_bytes + HTTP_BYTES) / room))
    others = float(math.ceil((made.scripts_bytes + made.images_bytes + files * HTTP_BYTES) / room))

    def sending(segments: float, shared: int) -> float:
        each_ns = link_ns * shared
        steady_ns = max(each_ns, host.rtt_ns / host.window_segments, loss_ns(host, down, each_ns))
        return sending_ns(host, down, segments, each_ns, steady_ns)

    rounds = 1 if transport.shares else math.ceil(files / lanes)
    waits_ns = (1 + rounds) * host.rtt_ns + (opened.wall_ns if lanes > 1 else 0.0)
    page_ns = opened.wall_ns + waits_ns + sending(html, 1) + sending(math.ceil(others / lanes), lanes)
    kept = 1 - min(down.loss, MOST_LOSS)
    packets = count * (1.5 * (html + others) / kept + 2 * files + lanes * (opened.packets + YOUNG_ACKS))
    payload = count * (made.html_bytes + made.scripts_bytes + made.images_bytes + (1 + files) * made.request_bytes)
    return Traffic(
        wall_ns=count * page_ns,
        packets=packets,
        bytes=payload / kept + packets * header_bytes,
        flat_out=path.rtt_ns == 0 and down.unlimited and page_ns < 100 * EXCHANGE_NS,
        cpu_ns=message_cpu_ns(transport, count * (1 + files), packets) + count * lanes * opened.cpu_ns,
    )
