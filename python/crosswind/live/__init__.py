"""`crosswind live`: a host's round trips and losses, as they come. See docs/live.md.

    Session ---- Probe (icmp, tcp_connect: sockets; messages: crosswind-cell)
       |
    Probes, OneWay: schedules and outcomes     Sans-IO: times and replies are arguments
    Windows, Events: summaries and alarms
       |
    lines, record, screen, metrics, report: output

Everything but `session`, the probes, `throughput`, `keys`, `metrics` and `report.surroundings` reads no clock and
opens no socket.
"""
