"""Certificates for one test run: ECDSA P-256, valid for days, good and bad ones."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)
VALID = 10 * DAY
"""Browsers take a certificate by its hash when it is valid for at most 14 days."""


@dataclass(frozen=True)
class Certificate:
    """What a server needs."""

    certificate_path: Path
    key_path: Path

    @property
    def sha256(self) -> str:
        """What browsers name it by, in hexadecimal."""
        certificate = x509.load_pem_x509_certificate(self.certificate_path.read_bytes())
        return certificate.fingerprint(hashes.SHA256()).hex()

    @property
    def options(self) -> dict[str, str]:
        """As peers take it."""
        return {"certificate_path": str(self.certificate_path), "key_path": str(self.key_path)}


@dataclass(frozen=True)
class Authority:
    """Signs certificates and is what clients trust."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    trust_path: Path

    @property
    def trust_pem(self) -> str:
        """Its certificate."""
        return self.trust_path.read_text(encoding="ascii")

    def issue(self, name: str, *, host: str = "localhost", age: datetime.timedelta = DAY) -> Certificate:
        """A server's certificate for `host` (and 127.0.0.1 if that is localhost), valid since `age` for ten days."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(host)]
        if host == "localhost":
            names.append(x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")))
        since = datetime.datetime.now(datetime.UTC) - age
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(host))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(since)
            .not_valid_after(since + VALID)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(identifier, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        directory = self.trust_path.parent
        paths = directory / f"{name}.pem", directory / f"{name}-key.pem"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
        return Certificate(*paths)


def authority(directory: Path, name: str) -> Authority:
    """A new authority whose files lie in `directory`."""
    key = ec.generate_private_key(ec.SECP256R1())
    since = datetime.datetime.now(datetime.UTC) - 2 * VALID
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(since + 4 * VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{name}.pem"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Authority(key, certificate, path)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


@dataclass(frozen=True)
class Certificates:
    """The certificates of a test run."""

    trusted: Authority
    good: Certificate
    expired: Certificate
    other_name: Certificate
    untrusted: Certificate

    @property
    def bad(self) -> dict[str, Certificate]:
        """Those that a client must refuse."""
        return {"expired": self.expired, "other name": self.other_name, "untrusted": self.untrusted}


def certificates(directory: Path) -> Certificates:
    """Makes them all, in `directory`."""
    trusted = authority(directory, "trusted")
    return Certificates(
        trusted=trusted,
        good=trusted.issue("good"),
        expired=trusted.issue("expired", age=VALID + DAY),
        other_name=trusted.issue("other-name", host="other.example"),
        untrusted=authority(directory, "stranger").issue("untrusted"),
    )
