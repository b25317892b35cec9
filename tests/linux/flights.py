"""Round trips counted from the packets of a connection, so that the clock of a busy machine has no influence.

A flight is what one host sends before it needs an answer. Packets without payload are left out, except those that open
a TCP connection: nobody waits for an acknowledgement alone.
"""

import polars as pl

TCP = 6


def flights(packets: pl.DataFrame) -> pl.DataFrame:
    """The packets that make up flights, in the order in which they were sent; `port` is the client's."""
    port = pl.when(pl.col("direction") == "forward").then("source_port").otherwise("destination_port")
    opens = (pl.col("protocol") == TCP) & pl.struct("direction", port).is_first_distinct()
    in_order = packets.sort("in_ns").with_columns(port.alias("port"))
    # An ICMP message, of a port that is closed by now, has port 0.
    return in_order.filter(((pl.col("payload_bytes") > 0) | opens) & (pl.col("port") > 0))


def connections(packets: pl.DataFrame) -> list[pl.DataFrame]:
    """The flights of each connection, in the order in which the connections were opened."""
    return flights(packets).partition_by("port", maintain_order=True)


def round_trips(flights: pl.DataFrame, until_ns: int) -> int:
    """How often the client was answered until then: by a packet that the server sent after the client's had arrived."""
    client, server = (flights.filter(pl.col("direction") == direction) for direction in ("forward", "reverse"))
    count, at_client = 0, int(flights["in_ns"][0])
    while True:
        at_server = _arrival(client, at_client)
        answered = None if at_server is None else _arrival(server, at_server)
        if answered is None or answered > until_ns:
            return count
        count, at_client = count + 1, answered


def _arrival(packets: pl.DataFrame, since_ns: int) -> int | None:
    """When the first packet that was sent since then has arrived."""
    arrivals = packets.filter(pl.col("in_ns") >= since_ns)["out_ns"].drop_nulls()
    return None if arrivals.is_empty() else int(arrivals[0])
