"""A peer in 30 lines: the server of the workload echo over tcp. docs/peers.md describes the protocol."""

import json
import socketserver
import sys
import threading


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while data := self.request.recv(65536):
            self.request.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    address_family = socketserver.socket.AF_INET6  # with "::", every address of either family
    daemon_threads = True


job = json.loads(sys.stdin.readline())
with Server(("::", job["port"]), Echo) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"event": "listening", "implementation": "echo_server.py 1.0"}), flush=True)
    sys.stdin.read()  # until Crosswind closes it
