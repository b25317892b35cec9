"""A server that listens and never accepts, and a client that gives up on it."""

NEVER_ACCEPTS = """
import signal, socket, sys
listening = socket.create_server(("", int(sys.argv[1])))
signal.pause()
"""

GIVES_UP = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
connection.sendall(bytes(1000))
connection.settimeout(float(sys.argv[3]))
try:
    connection.recv(1)
except TimeoutError:
    pass
"""
"""Waits for an answer, for so many seconds."""
