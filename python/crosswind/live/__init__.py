"""`crosswind live`: round trips and losses of a host, as they come. See docs/live.md.

    Session ---- Probe (icmp, tcp_connect): sockets
       |
    Probes: which probe is sent when, and what became of it      Sans-IO: times and replies are arguments
    Windows, Events: what is said of them
       |
    lines, record, screen, metrics: how it is shown

Everything but `session`, the probes, `keys` and `metrics` reads no clock and opens no socket.
"""
