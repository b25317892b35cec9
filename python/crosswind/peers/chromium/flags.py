"""The command line of the browser."""

from collections.abc import Sequence
from pathlib import Path

from crosswind.peers.chromium.certificate import public_key_sha256
from crosswind.peers.chromium.job import SECURE, Job

_QUIC = frozenset({"http3", "webtransport", "webtransport-datagram", "socketio-webtransport"})

_DISABLED_FEATURES = (
    # A page may ask for servers in private networks, which those of a cell are.
    "LocalNetworkAccessChecks",
    "LocalNetworkAccessChecksWebSockets",
    "LocalNetworkAccessChecksWebTransport",
    # They connect to servers before a page asks for it.
    "LoadingPredictorUseOptimizationGuide",
    "SpeculativePreconnect",
    "PreconnectToSearch",
    # They start work of their own.
    "MediaRouter",
    "OptimizationHints",
    "Translate",
    # http:// stays what it is.
    "HttpsUpgrades",
    "HttpsFirstBalancedModeAutoEnable",
)

_ALWAYS = (
    "--headless",
    # The namespaces of a cell are the sandbox; Chromium's own needs privileges that a cell may not have.
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


def flags(job: Job, profile: Path, *, extra: Sequence[str] = ()) -> list[str]:
    """Return the arguments of Chromium for this job. Args: profile: its directory. extra: what comes last."""
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
