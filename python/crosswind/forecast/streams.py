"""What traffic of several streams at a time takes: streams at a rate, and pages."""

import math

from crosswind.forecast.connection import EXCHANGE_NS, GREATEST_LOSS, loss_ns, sending_ns
from crosswind.forecast.demand import Pages, Streams
from crosswind.forecast.traffic import DELAYED_ACK_NS, HTTP_BYTES, YOUNG_ACKS, Carriage, Usage


def streams(traffic: Streams, carriage: Carriage) -> Usage:
    """Streams that each send at a rate; every message comes back."""
    connection, opening = carriage.connection, carriage.opening
    sender, messages = connection.sender, traffic.messages
    packets_each, size_bytes = carriage.packets_of(traffic.size_bytes)
    packets = 2.0 * messages * packets_each
    if 1e9 * traffic.connections / (traffic.streams * traffic.rate_per_s) > DELAYED_ACK_NS:
        packets += messages  # The next message comes too late to carry the ACK.
    packets = carriage.with_retransmissions(packets) + traffic.connections * (opening.packets + YOUNG_ACKS)
    timeout_ns = connection.timeout_ns if carriage.transport.datagram else sender.timeout_ns
    last_ns = timeout_ns if connection.mean_loss else 0.0
    beside = max(0.0, packets - 2 * messages * packets_each)
    return Usage(
        wall_ns=opening.wall_ns + messages * 1e9 / (traffic.streams * traffic.rate_per_s) + sender.rtt_ns + last_ns,
        packets=packets,
        bytes=2 * messages * size_bytes + beside * connection.header_bytes,
        flat_out=False,
        cpu_ns=carriage.cpu_ns(messages, packets) + traffic.connections * opening.cpu_ns,
    )


def pages(traffic: Pages, carriage: Carriage) -> Usage:
    """Pages, one after another, each on new connections: the document, then everything else at once.

    A connection that carries one request at a time needs as many rounds as it takes for all objects; one that streams
    share is asked for all at once. The connections share the link.
    """
    connection, opening = carriage.connection, carriage.opening
    sender, down = connection.sender, connection.reverse
    count, lanes, objects = traffic.count, traffic.connections, traffic.objects
    segment_bytes, header_bytes = connection.segment_bytes, connection.header_bytes
    link_ns = down.time_ns(segment_bytes + header_bytes, 1)
    html = float(math.ceil((traffic.html_bytes + HTTP_BYTES) / segment_bytes))
    others = float(math.ceil((traffic.objects_bytes + objects * HTTP_BYTES) / segment_bytes))

    def time_ns(segments: float, sharing: int) -> float:
        each_ns = link_ns * sharing
        steady_ns = max(each_ns, sender.rtt_ns / sender.window_segments, loss_ns(sender, down, each_ns))
        return sending_ns(sender, down, segments, each_ns, steady_ns)

    rounds = 1 if carriage.transport.shares_connection else math.ceil(objects / lanes)
    waits_ns = (1 + rounds) * sender.rtt_ns + (opening.wall_ns if lanes > 1 else 0.0)
    page_ns = opening.wall_ns + waits_ns + time_ns(html, 1) + time_ns(math.ceil(others / lanes), lanes)
    kept = 1 - min(down.loss, GREATEST_LOSS)
    packets = count * (1.5 * (html + others) / kept + 2 * objects + lanes * (opening.packets + YOUNG_ACKS))
    payload = count * (traffic.html_bytes + traffic.objects_bytes + (1 + objects) * traffic.request_bytes)
    return Usage(
        wall_ns=count * page_ns,
        packets=packets,
        bytes=payload / kept + packets * header_bytes,
        flat_out=connection.propagation_ns == 0 and down.unlimited and page_ns < 100 * EXCHANGE_NS,
        cpu_ns=carriage.cpu_ns(count * (1 + objects), packets) + count * lanes * opening.cpu_ns,
    )
