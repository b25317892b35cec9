"""What does the retry policy of urllib3 do at 5 % loss?

Without a timeout, a request waits for TCP: a lost SYN is sent again after 1 s, a lost segment after some 300 ms here.
With a connect timeout below 1 s and a retry, the second SYN is sooner. With a read timeout below TCP's own, requests
that have arrived are sent again, and the server does its work twice.
"""

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from urllib3 import HTTPConnectionPool, Retry, Timeout

REQUESTS = 40
PATH = {"delay": "50ms", "loss": "5%", "seed": 1}
RETRY = Retry(total=5, backoff_factor=0)


class Handler(BaseHTTPRequestHandler):
    """Answers with how many requests it has had."""

    count = 0

    def do_GET(self):
        Handler.count += 1
        body = b"%d" % Handler.count
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def server(address, port):
    ThreadingHTTPServer((address, port), Handler).serve_forever()


def requests(address, port, **policy):
    """Asks on a new connection each time. Returns how long each request took, and how many the server has had."""
    times = []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        with HTTPConnectionPool(address, port, **policy) as pool:
            answer = pool.request("GET", "/")
        times.append(time.perf_counter() - begun)
    return {"times_s": times, "handled": int(answer.data)}


def without_timeout(address, port):
    return requests(address, port, retries=False)


def short_connect_timeout(address, port):
    return requests(address, port, retries=RETRY, timeout=Timeout(connect=0.4))


def short_read_timeout(address, port):
    return requests(address, port, retries=RETRY, timeout=Timeout(connect=0.4, read=0.25))


def test_a_lost_syn_costs_a_second(net):
    answer = net.run(client=without_timeout, server=server, **PATH).value
    assert max(answer["times_s"]) > 1.2  # The second, and two round trips.
    assert answer["handled"] == REQUESTS


def test_a_connect_timeout_below_a_second_saves_most_of_it(net):
    answer = net.run(client=short_connect_timeout, server=server, **PATH).value
    assert max(answer["times_s"]) < 1.2
    assert answer["handled"] == REQUESTS


def test_a_read_timeout_below_that_of_tcp_repeats_work(net):
    answer = net.run(client=short_read_timeout, server=server, **PATH).value
    assert answer["handled"] > REQUESTS
