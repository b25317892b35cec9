"""The parts of the peer chromium that need no browser: job, flags, events, errors, certificates, profiles."""

import base64
import datetime
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from crosswind.peers.chromium.browser import profile, public_key_sha256
from crosswind.peers.chromium.events import BrowserClock, outcome, ready
from crosswind.peers.chromium.job import ChromiumError, read_job, read_text, warnings
from crosswind.peers.chromium.loading import Loading
from crosswind.peers.chromium.navigation import page_url
from crosswind.peers.registry import PEERS, Obstacle


def job_text(transport: str = "websocket", **changes: Any) -> str:
    workload = {"kind": "echo", "transport": transport, "timeout_ns": 1_000_000_000}
    job = {"schema": "crosswind.peer/1", "role": "client", "address": "10.77.0.2", "port": 7, "workload": workload}
    return json.dumps({**job, **changes})


def certificate(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    since = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(since).not_valid_after(since + datetime.timedelta(days=10))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode("ascii")


@pytest.mark.parametrize(
    "key", [ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048)], ids=["ecdsa", "rsa"]
)
def test_the_hash_of_a_public_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    encoding = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    expected = hashlib.sha256(key.public_key().public_bytes(*encoding)).digest()
    assert base64.b64decode(public_key_sha256(certificate(key))) == expected


@pytest.mark.parametrize("der", [b"", b"0", b"0\x03\x02\x01\x05", b"0\x80"])
def test_what_is_no_certificate(der: bytes) -> None:
    pem = f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(der).decode()}\n-----END CERTIFICATE-----"
    with pytest.raises(ChromiumError, match="the job's certificate is none"):
        public_key_sha256(pem)


def test_a_job_is_one_object_on_a_stream_that_goes_on() -> None:
    source = io.StringIO('{"a":\n 1}\nmore')
    assert read_text(source) == '{"a":\n 1}\n'
    assert source.read() == "more"


@pytest.mark.parametrize(
    ("address", "transport", "origin"),
    [
        ("10.77.0.2", "websocket", "http://10.77.0.2:7"),
        ("10.77.0.2", "http3", "https://10.77.0.2:7"),
        ("fd00::2", "webtransport", "https://[fd00::2]:7"),
    ],
)
def test_the_origin_is_the_server(address: str, transport: str, origin: str) -> None:
    text = job_text(transport, address=address, certificate_pem="x", certificate_sha256="00")
    assert read_job(text).origin == origin


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "standard input is no job: JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "standard input is no job: TypeError: list indices must be integers or slices, not str"),
        (job_text(schema="crosswind.peer/2"), "the job is of schema 'crosswind.peer/2'"),
        (job_text(role="server"), "Chromium cannot be the server"),
        (job_text("wss"), "the job has no certificate, and wss is secure"),
        (job_text("udp"), "Chromium has no udp: pages cannot send UDP datagrams"),
        (job_text("sctp"), "Chromium has no sctp: this peer does not know it"),
    ],
)
def test_jobs_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(ChromiumError) as raised:
        read_job(text)
    assert raised.value.message == message
    assert raised.value.hint


def test_ready_names_the_clock() -> None:
    assert ready("156.0.1.2", BrowserClock("performance.now", 5000, 77)) == {
        "event": "ready",
        "implementation": "Chromium 156.0.1.2",
        "clock": {"name": "performance.now", "resolution_ns": 5000, "monotonic_ns": 77},
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ERR_CONNECTION_REFUSED", "refused"),
        ("ERR_QUIC_PROTOCOL_ERROR.QUIC_PACKET_WRITE_ERROR", "refused"),
        ("ERR_QUIC_PROTOCOL_ERROR.QUIC_TLS_CERTIFICATE_UNKNOWN", "certificate"),
        ("ERR_CERT_DATE_INVALID", "certificate"),
        ("ERR_CONNECTION_RESET", "reset"),
        ("ERR_CONNECTION_CLOSED", "closed"),
        ("ERR_EMPTY_RESPONSE", "closed"),
        ("ERR_TIMED_OUT", "timeout"),
        ("ERR_HTTP2_PROTOCOL_ERROR", "protocol"),
        ("ERR_INVALID_HTTP_RESPONSE", "protocol"),
        ("ERR_FAILED", "error"),
        (None, "error"),
    ],
)
def test_outcomes_of_network_errors(code: str | None, expected: str) -> None:
    assert outcome(code) == expected


def test_a_profile_lasts_as_long_as_its_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("crosswind.peers.chromium.browser._LONGEST_BASE", 1000)
    with profile() as mine:
        preferences = json.loads((mine / "Default" / "Preferences").read_text("ascii"))
        assert preferences["net"]["network_prediction_options"] == 2
        assert mine.parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_a_profile_is_where_the_path_of_its_socket_is_short_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ("x" * 40)).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / ("x" * 40)))
    with profile() as mine:
        assert mine.parent == Path("/tmp")
        # What Chromium makes below it: unix(7) has 107 bytes for a path.
        assert len(str(mine)) == len("/tmp/crosswind-tmp-12345678")


def test_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_CHROMIUM", "/nowhere/chromium")
    assert PEERS["chromium"].missing("websocket") == Obstacle(
        "CROSSWIND_CHROMIUM names /nowhere/chromium, which is not a program", "unset it, or correct it"
    )


def workload_job(transport: str, **workload: Any) -> Any:
    given = {"kind": "echo", "transport": transport, **workload}
    return read_job(job_text(transport, workload=given, certificate_pem="x", certificate_sha256="00"))


def test_resumed_sessions_are_warned_of() -> None:
    (warning,) = warnings(workload_job("http2", kind="connect", connections=1))
    assert warning.startswith("Chromium resumes TLS sessions")
    assert warnings(workload_job("wss", connections=2)) == [warning]
    assert warnings(workload_job("wss", connections=1)) == []
    assert warnings(workload_job("webtransport", kind="connect")) == []


def page_events(size: int = 30) -> list[tuple[str, Any]]:
    """A page of a document and an image on one connection, in seconds and, in `timing`, milliseconds.

    Args: size: how many of the image's 30 bytes the browser reads.
    """

    def request(number: str, path: str, at_s: float) -> tuple[str, Any]:
        url = f"https://10.77.0.2:7{path}"
        return "Network.requestWillBeSent", {"requestId": number, "request": {"url": url}, "timestamp": at_s}

    def response(number: str, began_s: float, connect: tuple[float, float, float, float]) -> tuple[str, Any]:
        names = ("connectStart", "sslStart", "sslEnd", "connectEnd")
        times = {"requestTime": began_s, "sendStart": 30.5, "receiveHeadersStart": 40.25}
        timing = {**times, **dict(zip(names, connect, strict=True))}
        about = {"status": 200, "protocol": "h2", "connectionId": 77, "timing": timing, "headers": {}}
        if number == "2":
            about["headers"] = {"Content-Length": "30"}
        return "Network.responseReceived", {"requestId": number, "response": about}

    def ended(number: str, size: int, at_s: float) -> list[tuple[str, Any]]:
        return [
            ("Network.dataReceived", {"requestId": number, "dataLength": size, "timestamp": at_s}),
            ("Network.loadingFinished", {"requestId": number, "timestamp": at_s}),
        ]

    none = (-1.0, -1.0, -1.0, -1.0)
    return [
        # The end of a page that was stopped.
        ("Page.loadEventFired", {"timestamp": 9.0}),
        request("1", "/page/600/0/0/1/30", 10.0),
        ("Page.loadEventFired", {"timestamp": 9.5}),
        response("1", 10.001, (1.0, 11.0, 30.0, 30.0)),
        *ended("1", 600, 10.05),
        request("2", "/image/30?image=1", 10.051),
        response("2", 10.052, none),
        ("Page.lifecycleEvent", {"name": "firstContentfulPaint", "timestamp": 10.06}),
        ("Page.domContentEventFired", {"timestamp": 10.07}),
        *ended("2", size, 10.1),
        ("Page.loadEventFired", {"timestamp": 10.11}),
    ]


def test_a_page_becomes_events() -> None:
    loading = Loading()
    whole = []
    for name, event in page_events():
        loading.handle(name, event)
        whole.append(loading.is_whole)
    assert whole == [False] * (len(whole) - 1) + [True]
    assert loading.milestones_ms == {
        "first_contentful_paint_ms": 60.0,
        "dom_content_loaded_ms": 70.0,
        "load_event_ms": 110.0,
    }
    connected, html, image, sample = loading.events(3, 8, timeout_ns=1_000_000_000)
    assert connected == {
        "event": "connected",
        "connection": 8,
        "transport": "http2",
        "setup_ns": 29_000_000,
        "transport_ns": 10_000_000,
        "security_ns": 19_000_000,
        "upgrade_ns": None,
    }
    assert html == {
        "event": "object",
        "page": 3,
        "object": "html",
        "connection": 0,
        "queued_ns": 10_000_000_000,
        "sent_ns": 10_031_500_000,
        "first_ns": 10_041_250_000,
        "received_ns": 10_050_000_000,
        "bytes": 600,
        "outcome": "ok",
    }
    assert (image["object"], image["queued_ns"], image["received_ns"]) == ("image 1", 10_051_000_000, 10_100_000_000)
    assert (sample["exchange"], sample["connection"], sample["received_bytes"], sample["outcome"]) == (3, 8, 630, "ok")
    assert (sample["sent_ns"], sample["received_ns"]) == (10_000_000_000, 10_100_000_000)


def test_a_page_that_is_not_whole() -> None:
    loading = Loading()
    for name, event in page_events()[:-3]:
        loading.handle(name, event)
    *_, sample = loading.events(0, 0, timeout_ns=1_500_000_000)
    assert (sample["outcome"], sample["received_ns"]) == ("timeout", None)
    assert sample["error"] == "cannot load image 1: not there after 1.5 s"
    loading.handle("Network.loadingFailed", {"requestId": "2", "errorText": "net::ERR_CONNECTION_RESET"})
    *_, sample = loading.events(0, 0, timeout_ns=1_500_000_000)
    assert (sample["outcome"], sample["error"]) == ("reset", "cannot load image 1: net::ERR_CONNECTION_RESET")


def test_an_image_that_the_browser_stops_reading_is_no_success() -> None:
    loading = Loading()
    for name, event in page_events(size=20):
        loading.handle(name, event)
    *_, image, sample = loading.events(0, 0, timeout_ns=1_500_000_000)
    assert (image["bytes"], image["outcome"], image["received_ns"]) == (20, "protocol", None)
    assert (sample["outcome"], sample["received_ns"]) == ("protocol", None)
    assert sample["error"] == "cannot load image 1: the browser read 20 of its 30 bytes"


def test_where_a_page_is() -> None:
    numbers = {"html_bytes": 600, "scripts": 1, "scripts_bytes": 2, "images": 3, "images_bytes": 4}
    assert page_url(workload_job("http3", kind="page", **numbers)) == "https://10.77.0.2:7/page/600/1/2/3/4"
