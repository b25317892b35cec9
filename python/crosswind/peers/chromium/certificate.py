"""The hash of a certificate's public key, by which Chromium is told to accept the certificate."""

import base64
import hashlib
import ssl

from crosswind.peers.chromium.errors import ChromiumError

_SEQUENCE = 0x30
_VERSION = 0xA0
_FIELDS_BEFORE_KEY = 5
"""serialNumber, signature, issuer, validity, subject (RFC 5280, section 4.1)."""


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
