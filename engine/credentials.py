"""Credentials and other secrets as they are stored: sealed for one owner and one tool row, under a named master key.

A sealed text is ``cj1.<key id>.<base64url>`` (AES-256-GCM, a fresh nonce each time) or, for single values that must
seal alike each time, ``cjv1.<key id>.<base64url>`` (AES-256-SIV). The key is derived from the master key for each owner
(HKDF-SHA256); form, key id, owner and row id are authenticated with it, so what is moved elsewhere does not open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from engine.master_keys import MasterKeys, find_master_keys
from events.errors import Refused
from events.keys import canonical_bytes
from events.masking import SEALED_VALUE

__all__ = ("Credentials", "CredentialsError", "MasterKeys", "Vault", "find_master_keys", "key_id")

Credentials: TypeAlias = dict[str, Any]
"""A row's secrets by name, as JSON content."""

_BLOB: Final = "cj1"
_VALUE: Final = SEALED_VALUE
_SEALED: Final = re.compile(r"(cj1|cjv1)\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]+)")
_NONCE: Final = 12
_OPENED: Final = "was it moved to another owner or row, changed, or is the master key another one?"


class CredentialsError(Refused):
    """Stored credentials cannot be read or written; the text says why and shows none of them."""


class Vault:
    """Seals secrets and opens them again; what it cannot open is an error, never an empty result (BEHAVIOUR 132).

    :param keys: the master keys; None: those that :func:`engine.master_keys.find_master_keys` finds, at first need
    """

    def __init__(self, keys: MasterKeys | Callable[[], MasterKeys] | None = None) -> None:
        self._find = keys if callable(keys) else find_master_keys
        self._found = keys if isinstance(keys, MasterKeys) else None
        self._fixed = self._found is not None

    def __repr__(self) -> str:
        return f"<Vault {self._found!r}>" if self._found is not None else "<Vault, not yet opened>"

    @property
    def current(self) -> str:
        """The id of the master key under which everything new is sealed."""
        return self._keys().current

    def knows(self, name: str) -> bool:
        """Tell whether a master key is among the keys."""
        return name in self._keys().keys

    def seal(self, credentials: Credentials, *, owner: str | None, row_id: str) -> str | None:
        """Return the sealed credentials, another text each time; None where there are none.

        :raises CredentialsError: if they have no JSON form
        """
        if not credentials:
            return None
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        keys = self._keys()
        nonce = os.urandom(_NONCE)
        bound = _bound(_BLOB, keys.current, owner, row_id)
        key = _derived(keys.keys[keys.current], _BLOB, owner)
        sealed = AESGCM(key).encrypt(nonce, _encoded(credentials), bound)
        return _text(_BLOB, keys.current, nonce + sealed)

    def open(self, blob: str, *, owner: str | None, row_id: str) -> Credentials:
        """Return the credentials that were sealed for this owner and row.

        :raises CredentialsError: if they cannot be opened
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        name, content = _parts(_BLOB, blob)
        master = self._named(name)
        try:
            cipher = AESGCM(_derived(master, _BLOB, owner))
            opened = cipher.decrypt(content[:_NONCE], content[_NONCE:], _bound(_BLOB, name, owner, row_id))
        except (InvalidTag, ValueError):
            raise CredentialsError(f"the stored credentials (key {name}) do not open; {_OPENED}") from None
        credentials = msgspec.json.decode(opened)
        if not isinstance(credentials, dict):
            raise CredentialsError("the stored credentials are no object of names and values; store them again")
        return credentials

    def reseal(self, blob: str, *, owner: str | None, row_id: str) -> str | None:
        """Return the credentials sealed anew under the current key; None if they are sealed under it already.

        :raises CredentialsError: if they cannot be opened
        """
        if key_id(blob) == self.current:
            return None
        return self.seal(self.open(blob, owner=owner, row_id=row_id), owner=owner, row_id=row_id)

    def seal_value(self, value: Any, *, owner: str | None, row_id: str, within: str = "") -> str:
        """Return one value sealed, the same text each time as long as the current key is the same.

        So a digest can be made over it; whoever reads it learns which values of one owner, row and ``within`` are
        equal, and no more.

        :param within: what else it is bound to
        :raises CredentialsError: if it has no JSON form
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        keys = self._keys()
        cipher = AESSIV(_derived(keys.keys[keys.current], _VALUE, owner, 64))
        return _text(
            _VALUE, keys.current, cipher.encrypt(_encoded(value), [_bound(_VALUE, keys.current, owner, row_id, within)])
        )

    def open_value(self, text: str, *, owner: str | None, row_id: str, within: str = "") -> Any:
        """Return the value that :meth:`seal_value` sealed for this owner, row and ``within``.

        :raises CredentialsError: if it cannot be opened
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        name, content = _parts(_VALUE, text)
        cipher = AESSIV(_derived(self._named(name), _VALUE, owner, 64))
        try:
            return msgspec.json.decode(cipher.decrypt(content, [_bound(_VALUE, name, owner, row_id, within)]))
        except (InvalidTag, ValueError):
            raise CredentialsError(f"a sealed value (key {name}) does not open; {_OPENED}") from None

    def mark(self, *parts: str | None) -> str:
        """Return a short text that nobody without the master key can make for these parts."""
        keys = self._keys()
        return _mark(keys.keys[keys.current], parts)

    def is_mark(self, mark: str, *parts: str | None) -> bool:
        """Tell whether this is a mark of the parts, under any of the keys."""
        return any(hmac.compare_digest(mark.encode(), made.encode()) for made in self._marks(parts))

    def _marks(self, parts: tuple[str | None, ...]) -> Iterator[str]:
        for master in self._keys().keys.values():
            yield _mark(master, parts)

    def _keys(self) -> MasterKeys:
        if self._found is None:
            self._found = self._find()
        return self._found

    def _named(self, name: str) -> bytes:
        key = self._keys().keys.get(name)
        if key is None and not self._fixed:
            # Somebody may have added one since.
            self._found = self._find()
            key = self._found.keys.get(name)
        if key is None:
            raise CredentialsError(f"master key {name} is not among this process's keys; add it, or store them again")
        return key


def key_id(sealed: str) -> str:
    """Return the id of the master key that a text is sealed under.

    :raises CredentialsError: if it is no sealed text
    """
    return _match(sealed).group(2)


def _match(sealed: str) -> re.Match[str]:
    match = _SEALED.fullmatch(sealed)
    if match is None:
        raise CredentialsError("the stored credentials are not in a form that this release knows; store them again")
    return match


def _parts(form: str, sealed: str) -> tuple[str, bytes]:
    match = _match(sealed)
    encoded = match.group(3)
    try:
        content = base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        content = b""
    if match.group(1) != form or not content:
        raise CredentialsError("the stored credentials are damaged, or of another kind; store them again")
    return match.group(2), content


def _text(form: str, name: str, content: bytes) -> str:
    return f"{form}.{name}.{base64.urlsafe_b64encode(content).rstrip(b'=').decode()}"


def _encoded(value: Any) -> bytes:
    try:
        return canonical_bytes(value)
    except Refused:
        # Not its text: that may quote the value.
        raise CredentialsError("these credentials have no JSON form; give texts, numbers, lists and objects") from None


def _bound(form: str, name: str, owner: str | None, row_id: str, *more: str) -> bytes:
    return canonical_bytes([form, name, owner, row_id, *more])


def _derived(master: bytes, form: str, owner: str | None, size: int = 32) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = canonical_bytes(["calljournal", form, owner])
    return HKDF(algorithm=SHA256(), length=size, salt=None, info=info).derive(master)


def _mark(master: bytes, parts: tuple[str | None, ...]) -> str:
    key = hmac.digest(master, b"calljournal marks", hashlib.sha256)
    return hmac.new(key, canonical_bytes(parts), hashlib.sha256).hexdigest()[:24]
