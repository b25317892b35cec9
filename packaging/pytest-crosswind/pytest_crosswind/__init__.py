"""Network tests with pytest: a client and a server over an emulated path, in virtual time (docs/pytest.md).

    from pytest_crosswind import ms

    def test_replies(net):
        result = net.run(client=ask, server=answer, network="4g", loss="2%", repetitions=30)
        assert result.p95 < 800 * ms

The fixture `net` is a `Net`, what it returns a `Result`. Times are in seconds.
"""

from pytest_crosswind.estimate import Estimate
from pytest_crosswind.net import ClientFailedError, FidelityWarning, Net
from pytest_crosswind.result import Direction, Repetition, Result

__all__ = [
    "ClientFailedError", "Direction", "Estimate", "FidelityWarning", "Net", "Repetition", "Result", "ms", "s", "us",
]  # fmt: skip

s = 1.0
"""A second."""
ms = 1e-3
"""A millisecond, in seconds: `300 * ms`."""
us = 1e-6
"""A microsecond, in seconds."""
