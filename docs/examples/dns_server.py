"""A DNS server that answers every question with 192.0.2.1: `PORT`."""

import socket
import sys

HEADER = bytes.fromhex("8180 0001 0001 0000 0000")  # after the query's number
ANSWER = bytes.fromhex("c00c 0001 0001 0000003c 0004 c0000201")

with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("", int(sys.argv[1])))
    while True:
        query, client = server.recvfrom(512)
        question = query[12 : query.index(0, 12) + 5]
        server.sendto(query[:2] + HEADER + question + ANSWER, client)
