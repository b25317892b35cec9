"""A peer in 30 lines: the client of the workload echo over tcp. docs/peers.md describes the protocol."""

import json
import socket
import sys
import time


def show(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)


clock, job = time.monotonic_ns, json.load(sys.stdin)
size, samples = job["workload"]["size_bytes"], []
times = {"name": "CLOCK_MONOTONIC", "resolution_ns": 1, "monotonic_ns": 0}
show("ready", implementation="echo_client.py 1.0", clock=times)
begun = clock()
connection = socket.create_connection((job["address"], job["port"]), job["workload"]["timeout_ns"] / 1e9)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
replies = connection.makefile("rb")
show("connected", connection=0, transport="tcp", setup_ns=clock() - begun)
for exchange in range(job["workload"]["messages"]):
    sent = clock()
    connection.sendall(bytes(size))
    reply = replies.read(size)
    sample = {"exchange": exchange, "connection": 0, "sent_ns": sent, "received_ns": clock(), "sent_bytes": size}
    samples.append({**sample, "received_bytes": len(reply), "outcome": "ok" if len(reply) == size else "closed"})
for sample in samples:
    show("sample", **sample)
show("finished")
