"""A certificate authority of the tests' own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

__all__ = ("Authority", "made_authority")


class Authority(msgspec.Struct, frozen=True):
    """A server's certificate, and a client that trusts its maker."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def made_authority(folder: Path, *names: str) -> Authority:
    """Make a certificate for these names, in a file of the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "calljournal tests")])
    now, serial = datetime.now(UTC), x509.random_serial_number()
    certificate = (
        x509.CertificateBuilder(issuer, issuer, key.public_key(), serial, now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    file = folder / "server.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + pem)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return Authority(server, ssl.create_default_context(cadata=pem.decode()))
