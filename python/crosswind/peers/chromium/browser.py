"""Finds Chromium, starts it, and ends it with all its processes."""

import base64
import contextlib
import fcntl
import hashlib
import json
import os
import signal
import ssl
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from crosswind.files.temporary import temporary_directory
from crosswind.peers.chromium.devtools import BrowserGoneError, DevTools
from crosswind.peers.chromium.job import SECURE, ChromiumError, Job
from crosswind.peers.find_program import CHROMIUM, find_program, is_older, program_version

EXTRA_FLAGS = "CROSSWIND_CHROMIUM_FLAGS"
"""The environment variable with further flags."""
OLDEST = 132
"""The first version with the whole browser in `--headless`. Older ones are not tested."""

_PIPE_DESCRIPTORS = (3, 4)
_LOG_BYTES = 4000
_LOG_LINES = 3

_PREFERENCES = {"net": {"network_prediction_options": 2}}
"""Never connect to a server before a page asks for it (chrome/browser/preloading/preloading_prefs.h)."""

_LONGEST_BASE = 39
"""Chromium makes a socket three levels below, with a path of 107 bytes at most (unix(7))."""

_QUIC = frozenset({"http3", "webtransport", "webtransport-datagram", "socketio-webtransport"})

_DISABLED_FEATURES = (
    # A page may contact servers in private networks, as in a cell.
    "LocalNetworkAccessChecks",
    "LocalNetworkAccessChecksWebSockets",
    "LocalNetworkAccessChecksWebTransport",
    # They connect to servers before a page asks for it.
    "LoadingPredictorUseOptimizationGuide",
    "SpeculativePreconnect",
    "PreconnectToSearch",
    # They start their own work.
    "MediaRouter",
    "OptimizationHints",
    "Translate",
    # http:// stays http://.
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
)

_ALWAYS = (
    "--headless",
    # A cell's namespaces are the sandbox; Chromium's own needs privileges missing in a cell.
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-hang-monitor",
    "--disable-ipc-flooding-protection",
    "--disable-renderer-backgrounding",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
)

_SEQUENCE = 0x30
_VERSION = 0xA0

_FIELDS_BEFORE_KEY = 5
"""serialNumber, signature, issuer, validity, subject (RFC 5280, section 4.1)."""


@dataclass(frozen=True)
class Browser:
    """A running browser. Attributes: version: as 156.0.8078.79."""

    devtools: DevTools
    version: str


def find_chromium() -> str:
    """Return the path of the program. Raises: CrosswindError when there is none."""
    program = find_program("chromium")
    if program is None:
        hint = f"apt-get install chromium, or set {CHROMIUM} to its path"
        raise ChromiumError("Chromium is not installed", hint=hint)
    return program


def check_installed() -> None:
    """Raises: CrosswindError without Chromium, or for a too old one."""
    _refuse_old(program_version(find_chromium()))


@contextlib.contextmanager
def browser(job: Job) -> Iterator[Browser]:
    """A browser for this job. Raises: CrosswindError when it does not start, or ends before its use does."""
    program = find_chromium()
    extra = os.environ.get(EXTRA_FLAGS, "").split()
    with profile() as directory, _log(job.directory) as log:
        # Its own files go with the profile.
        directories = {name: str(directory) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        pid, devtools = _start([program, *flags(job, directory, extra=extra)], {**os.environ, **directories}, log)
        try:
            yield Browser(devtools, _version(devtools))
        except BrowserGoneError as error:
            raise ChromiumError(
                f"Chromium has ended: {_output_tail(log)}",
                hint=_log_hint(log) or f"try {program} --headless --dump-dom",
            ) from error
        finally:
            _end(pid)
            devtools.close()


def _version(devtools: DevTools) -> str:
    version = str(devtools.call("Browser.getVersion")["product"]).partition("/")[2]
    _refuse_old(version or None)
    return version


def _refuse_old(version: str | None) -> None:
    if is_older(version, OLDEST):
        raise ChromiumError(
            f"Chromium {version} is too old", hint=f"install version {OLDEST} or later, or set {CHROMIUM} to one"
        )


def _start(command: list[str], environment: Mapping[str, str], log: IO[bytes]) -> tuple[int, DevTools]:
    theirs_in, our_out = map(_above_pipe, os.pipe())
    our_in, theirs_out = map(_above_pipe, os.pipe())
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                (os.POSIX_SPAWN_DUP2, theirs_in, _PIPE_DESCRIPTORS[0]),
                (os.POSIX_SPAWN_DUP2, theirs_out, _PIPE_DESCRIPTORS[1]),
            ],
            setsid=True,
        )
    except OSError as error:
        raise ChromiumError(f"cannot start {command[0]}: {error.strerror}") from error
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return pid, DevTools(our_in, our_out)


def _above_pipe(descriptor: int) -> int:
    """The same file under a number free in the browser."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(_PIPE_DESCRIPTORS) + 1)
    os.close(descriptor)
    return moved


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _log(directory: Path | None) -> IO[bytes]:
    if directory is None:
        return tempfile.TemporaryFile()
    return (directory / "chromium.log").open("w+b")


def _output_tail(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _LOG_BYTES))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    # The crash reporter complains about files missing in containers.
    words = [line for line in lines if "/crashpad/" not in line]
    return " / ".join(words[-_LOG_LINES:]) or "it said nothing"


def _log_hint(log: IO[bytes]) -> str | None:
    return f"all that it said: {log.name}" if isinstance(log.name, str) else None


@contextlib.contextmanager
def profile() -> Iterator[Path]:
    """A new directory, removed at the end. Killed processes' directories are removed too."""
    base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _LONGEST_BASE:
        base = "/tmp"
    with temporary_directory(Path(base)) as path:
        (path / "Default").mkdir()
        (path / "Default" / "Preferences").write_text(json.dumps(_PREFERENCES), encoding="ascii")
        yield path


def flags(job: Job, profile: Path, *, extra: Sequence[str] = ()) -> list[str]:
    """Return Chromium's arguments for this job. Args: profile: its directory. extra: appended."""
    chosen = [*_ALWAYS, f"--disable-features={','.join(_DISABLED_FEATURES)}", f"--user-data-dir={profile}"]
    # Ports of old services, such as 7 (echo), are refused otherwise (net/base/port_util.cc).
    chosen.append(f"--explicitly-allowed-ports={job.port}")
    if job.transport in SECURE:
        assert job.certificate_pem is not None
        chosen.append(f"--ignore-certificate-errors-spki-list={public_key_sha256(job.certificate_pem)}")
    else:
        # Only secure contexts have the clock of 5 us, and may be isolated.
        chosen.append(f"--unsafely-treat-insecure-origin-as-secure={job.origin}")
    if job.transport == "http3":
        # Any server: an IPv6 address in its brackets is not recognised here.
        chosen.append("--origin-to-force-quic-on=*")
    if job.transport not in _QUIC:
        chosen.append("--disable-quic")
    if job.transport in {"https1", "wss"}:
        chosen.append("--disable-http2")
    return [*chosen, *extra, "about:blank"]


def public_key_sha256(pem: str) -> str:
    """Return the SHA-256 of the SubjectPublicKeyInfo (RFC 7469, section 2.4), in base64.

    Args: pem: one certificate. Raises: ChromiumError when it is none.
    """
    try:
        der = ssl.PEM_cert_to_DER_cert(pem.strip())
        to_be_signed = _content(der, _content(der, 0)[0])
        at = to_be_signed[0]
        if der[at] == _VERSION:
            at = _content(der, at)[1]
        for _ in range(_FIELDS_BEFORE_KEY):
            at = _content(der, at)[1]
        end = _content(der, at)[1]
        if der[at] != _SEQUENCE or end > len(der):
            raise ValueError("no public key where one should be")
    except (ValueError, IndexError) as error:
        raise ChromiumError(f"the job's certificate is none: {error}", hint="docs/peers.md, The job") from error
    return base64.b64encode(hashlib.sha256(der[at:end]).digest()).decode("ascii")


def _content(der: bytes, at: int) -> tuple[int, int]:
    """Where the content of the element at `at` begins and where the element ends (X.690, section 8.1)."""
    length, begin = der[at + 1], at + 2
    if length >= 0x80:
        octets = length & 0x7F
        length, begin = int.from_bytes(der[begin : begin + octets]), begin + octets
    return begin, begin + length
