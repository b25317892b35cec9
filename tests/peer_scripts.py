"""Peers for tests: small programs that follow the peer protocol over TCP, or break it in one place."""

import sys
from pathlib import Path
from typing import Any

Object = dict[str, Any]

PYTHON = (sys.executable, "-I", "-S")
EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"

ECHO: Object = {"kind": "echo", "transport": "tcp", "messages": 3, "size_bytes": 10}

_SAY = """
import json, os, socket, sys, time
def say(event, **values):
    print(json.dumps({"event": event, **values}), flush=True)
"""

_CLIENT = f"""{_SAY}
job = json.load(sys.stdin)
work = job["workload"]
def ready(monotonic_ns=0):
    say("ready", implementation="Test 1", clock={{"name": "test", "resolution_ns": 1, "monotonic_ns": monotonic_ns}})
def connect(transport="tcp"):
    begun = time.monotonic_ns()
    connection = socket.create_connection((job["address"], job["port"]), 5)
    say("connected", connection=0, transport=transport, setup_ns=time.monotonic_ns() - begun)
    return connection
def exchange(connection, number):
    sent, message = time.monotonic_ns(), bytes(work["size_bytes"])
    connection.sendall(message)
    received = len(connection.recv(len(message), socket.MSG_WAITALL))
    outcome = "ok" if received == len(message) else "closed"
    say("sample", exchange=number, connection=0, sent_ns=sent, received_ns=time.monotonic_ns(), sent_bytes=len(message),
        received_bytes=received, outcome=outcome)
def all_of_it():
    ready()
    connection = connect()
    for number in range(work["messages"]):
        exchange(connection, number)
    say("finished")
"""

_SERVER = f"""{_SAY}
import socketserver, threading
job = json.loads(sys.stdin.readline())
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
            after(data)
def after(data):
    pass
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
def listen():
    server = Server((job["address"], job["port"]), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
"""


def client(body: str = "all_of_it()", name: str = "test-client") -> Object:
    """A client whose program ends with `body`."""
    return {"name": name, "command": [*PYTHON, "-c", f"{_CLIENT}\n{body}\n"]}


def server(body: str, name: str = "test-server", ready: str | None = None) -> Object:
    """A server whose program ends with `body`."""
    return {"name": name, "command": [*PYTHON, "-c", f"{_SERVER}\n{body}\n"], "ready": ready}


def good_server() -> Object:
    """A server that follows the protocol."""
    return server('listen(); say("listening", implementation="Test 2"); sys.stdin.read()')


def silent_server(ready: str, said: str = "") -> Object:
    """A server that does not know the protocol: it is ready by its port, or by what it has said."""
    # A second line of its standard input would never come: it reads none.
    body = f"listen(); print({said!r}, flush=True); threading.Event().wait()"
    return server(body, ready=ready)


def example(name: str) -> Object:
    """A program of docs/examples as a peer."""
    program = ["node"] if name.endswith(".mjs") else [sys.executable]
    return {"name": name, "command": [*program, str(EXAMPLES / name)]}
