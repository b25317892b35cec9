"""What an SFTP client does: reads of 32 KiB, so many at a time. `serve PORT` answers; `HOST PORT READS AT_A_TIME` reads."""

import socket
import sys

SIZE = 32 * 1024
READ = bytes(29)  # as long as SSH_FXP_READ

if sys.argv[1] == "serve":
    connection, _ = socket.create_server(("", int(sys.argv[2]))).accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as sshd does
    requests = connection.makefile("rb")
    while requests.read(len(READ)):
        connection.sendall(bytes(SIZE))
else:
    host, port, reads, at_a_time = sys.argv[1], *map(int, sys.argv[2:])
    connection = socket.create_connection((host, port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answers = connection.makefile("rb")
    connection.sendall(READ * at_a_time)
    for number in range(reads):
        answers.read(SIZE)
        if number + at_a_time < reads:
            connection.sendall(READ)
