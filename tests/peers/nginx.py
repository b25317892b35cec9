"""nginx as a server of static files, without root and without a fixed port."""

import os
import pwd
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from conftest import requires
from peers.certificates import Certificates
from peers.implementations import SECURE, SIZES
from peers.programs import DEADLINE_S, Server

LISTEN = {"http1": "", "h2c": "http2", "https1": "ssl", "http2": "ssl http2", "http3": "quic"}
CONFIGURATION = """
daemon off;
worker_processes 1;
{user}
pid {home}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    default_type application/octet-stream;
    {secure}
    server {{
        listen {address} {options};
        server_name localhost;
        root {home}/files;
    }}
}}
"""


class Nginx:
    """A running nginx, until `stop` ends it."""

    def __init__(self, home: Path, transport: str, certificates: Certificates) -> None:
        program = requires("nginx")
        if transport == "http3" and "http_v3_module" not in _built_with(program):
            # A packager's choice: nothing that could be installed beside it changes that.
            pytest.skip("nginx built without HTTP/3")
        files = home / "files" / "bytes"
        files.mkdir(parents=True)
        for size in SIZES:
            (files / str(size)).write_bytes(bytes(size))
        identity = certificates.good
        secure = f"ssl_certificate {identity.certificate_path}; ssl_certificate_key {identity.key_path};"
        kind = socket.SOCK_DGRAM if transport == "http3" else socket.SOCK_STREAM
        with socket.socket(socket.AF_INET, kind) as listener, (home / "errors").open("wb") as errors:
            listener.bind(("127.0.0.1", 0))
            if kind == socket.SOCK_STREAM:
                listener.listen()
            address = "{}:{}".format(*listener.getsockname())
            configuration = home / "nginx.conf"
            configuration.write_text(
                CONFIGURATION.format(
                    home=home,
                    # Its workers must be able to read what this test has written.
                    user=f"user {pwd.getpwuid(0).pw_name};" if os.geteuid() == 0 else "",
                    address=address,
                    options=LISTEN[transport],
                    secure=secure if transport in SECURE else "",
                )
            )
            # nginx takes over sockets that already listen (its way to change the binary without a gap). So the port is
            # the kernel's choice and nobody has to wait: what connects too early waits in the backlog.
            self.process = subprocess.Popen(
                [program, "-p", str(home), "-c", str(configuration)],
                env={"NGINX": f"{listener.fileno()};"},
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                stderr=errors,
            )
        self.server = Server(None, address, certificates.trusted.trust_path)

    def stop(self) -> None:
        """Ends it."""
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            # It and its worker.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _built_with(program: str) -> list[str]:
    shown = subprocess.run([program, "-V"], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
    return re.findall(r"--with-(\w+)", shown.stderr)
