"""A peer in 30 lines: the client of the workload echo over tcp. docs/peers.md describes the protocol."""

import json
import socket
import sys
import time

clock, job = time.monotonic_ns, json.load(sys.stdin)
work, events = job["workload"], []


def show(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


show("ready", implementation="echo_client.py 1.0",
     clock={"name": "CLOCK_MONOTONIC", "resolution_ns": 1, "monotonic_ns": 0})  # fmt: skip
begun = clock()
connection = socket.create_connection((job["address"], job["port"]), work["timeout_ns"] / 1e9)
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
show("connected", connection=0, transport="tcp", setup_ns=clock() - begun)
message = bytes(work["size_bytes"])
for exchange in range(work["messages"]):
    sent = clock()
    connection.sendall(message)
    reply = connection.recv(len(message), socket.MSG_WAITALL)
    events.append({"exchange": exchange, "connection": 0, "sent_ns": sent, "received_ns": clock(), "sent_bytes": len(message),
                   "received_bytes": len(reply), "outcome": "ok" if len(reply) == len(message) else "closed"})  # fmt: skip
for sample in events:
    show("sample", **sample)
show("finished")
