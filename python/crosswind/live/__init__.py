"""`crosswind live`: round trips and losses of a host, as they come. See docs/live.md.

    Session ---- Probe (icmp, tcp_connect: sockets; messages: crosswind-cell)
       |
    Probes, OneWay: which probe is sent when, and what became of it      Sans-IO: times and replies are arguments
    Windows, Events: what is said of them
       |
    lines, record, screen, metrics, report: how it is shown

Everything but `session`, the probes, `throughput`, `keys`, `metrics` and `report.surroundings` reads no clock and
opens no socket.
"""
