"""No test here starts a kernel of virtual time."""

from described_kernel import described_kernel

__all__ = ["described_kernel"]
