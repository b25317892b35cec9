"""No test here starts a kernel of virtual time."""

from described_kernel import described_kernel as described_kernel
