"""Download sources of models: names of the catalogue, files of a hub, addresses."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

from ybs.config.host import Host
from ybs.core.errors import ConfigError
from ybs.providers.http.client import host_of
from ybs.providers.http.transport import Route
from ybs.providers.local import models
from ybs.providers.local.choice import ModelCandidate, Shape, choose, plan
from ybs.providers.local.download import (
    Downloaded,
    Progress,
    alone,
    digest_of,
    download,
    is_sha256,
)
from ybs.providers.local.hardware import Machine
from ybs.providers.local.models import STARTER_BYTES, STARTER_SHA256

_FILE: Final = re.compile(r"[A-Za-z0-9][\w.+-]{0,190}\.gguf", re.ASCII)
_PART_OF_MANY: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


class Source(Struct, frozen=True, kw_only=True):
    """A model file at an address, and the `folder` that it goes to. `reason` says why it was chosen, where that was not the person."""

    folder: Path
    url: str
    file: str
    sha256: str = ""
    reason: str = ""

    @property
    def path(self) -> Path:
        """Where it lies, or would lie."""
        return self.folder / self.file

    @property
    def name(self) -> str:
        """The name that chooses it."""
        from ybs.providers.local.facts import STARTER_NAME

        return STARTER_NAME if self.file == models.STARTER_FILE else Path(self.file).stem


def fitting(machine: Machine) -> Iterator[tuple[ModelCandidate, str]]:
    """Yield the catalogue's models that the machine can run, each once and the best first, with their run plan."""
    best = choose(machine, CANDIDATES)
    if best is not None:
        yield best[0], best[1].reason
    seen = {best[0].name} if best else set[str]()
    for each in reversed(CANDIDATES):  # the smallest quantisation of each
        if each.name not in seen and (made := plan(machine, each.shape)):
            seen.add(each.name)
            yield each, made.reason


def find_source(host: Host, name: str, hub: str, machine: Machine) -> Source:
    """Return where a model is to be had: the best one for the machine where no name is given.

    A name is one of the catalogue (`qwen2.5-coder-7b`, `qwen2.5-coder-7b:q6_k`), a file of the hub
    (`OWNER/REPOSITORY/FILE.gguf`) or an address; `#SHA-256` behind it is compared. Raises ConfigError.
    """
    folder = models.models_folder(host)
    name, _, sha256 = name.partition("#")
    if sha256 and not is_sha256(sha256):
        raise ConfigError("What stands behind # is not a SHA-256: 64 digits from 0 to f.")
    if "://" in name:
        host_of(name)
        return _source(folder, name, urlsplit(name).path.rpartition("/")[2], sha256)
    if name.count("/") == 2:
        repository, _, file = name.rpartition("/")
        return _source(folder, _address(hub, repository, file), file, sha256)
    candidate, reason = _candidate(name.lower(), machine)
    address = _address(hub, candidate.repository, candidate.file)
    return _source(folder, address, candidate.file, sha256 or candidate.sha256, reason)


async def is_there(source: Source) -> bool:
    """Return whether the model is here. Raises ConfigError where the file does not match the checksum, if that is known."""
    if not source.path.is_file():
        return False
    if source.sha256:
        digest = await asyncio.to_thread(digest_of, source.path)
        if digest != source.sha256.lower():
            raise ConfigError(
                f"{source.path} does not match: SHA-256 {digest}, expected {source.sha256.lower()}.\n"
                "Remove it to download the model again."
            )
    return True


async def install(source: Source, progress: Progress, route: Route | None = None) -> Downloaded:
    """Download a model into its place, if it is not there. Raises ProviderDown and YbsError."""
    async with alone(source.path.parent):
        return await download(
            source.url, source.path, progress, known_sha256=source.sha256, route=route
        )


def _candidate(name: str, machine: Machine) -> tuple[ModelCandidate, str]:
    if not name:
        best = choose(machine, CANDIDATES)
        if best is None:
            raise ConfigError(f"No model of ybs's catalogue fits this machine: {machine.words}.")
        return best[0], best[1].reason
    found = [each for each in CANDIDATES if name in (each.name, each.full_name)]
    if not found:
        names = ", ".join(dict.fromkeys(each.name for each in CANDIDATES))
        raise ConfigError(
            f"There is no model {name!r} in the catalogue: {names}.\n"
            "Or name a file of the hub (OWNER/REPOSITORY/FILE.gguf), or an address that ends in .gguf."
        )
    best = choose(machine, found) if len(found) > 1 else None
    return (best[0], best[1].reason) if best else (found[-1], "")


def _address(hub: str, repository: str, file: str) -> str:
    """Return the address of a file: as Hugging Face has it, or as a mirror's pattern says."""
    host_of(hub)
    if "{file}" in hub:
        return hub.replace("{repository}", repository).replace("{file}", file)
    return f"{hub.rstrip('/')}/{repository}/resolve/main/{file}"


def _source(folder: Path, url: str, file: str, sha256: str, reason: str = "") -> Source:
    if not _FILE.fullmatch(file):
        raise ConfigError(f"{file[:200]!r} is not the name of a GGUF file.")
    if _PART_OF_MANY.search(file):
        raise ConfigError(
            f"{file} is one part of a model of several files, which ybs cannot put together."
        )
    return Source(folder=folder, url=url, file=file, sha256=sha256, reason=reason)


_CODER: Final = "qwen2.5-coder"
#: Name, layers, bytes of one token in the window, share that is read for a token, and gigabytes of each quantisation.
_ROWS: Final = (
    ("qwen3-coder-30b", 48, 98_304, 0.11, {"q8_0": 32.5, "q6_k": 25.1, "q4_k_m": 18.6}),
    (f"{_CODER}-14b", 48, 196_608, 1.0, {"q8_0": 15.7, "q6_k": 12.2, "q4_k_m": 9.0}),
    (f"{_CODER}-7b", 28, 57_344, 1.0, {"q8_0": 8.1, "q6_k": 6.3, "q4_k_m": 4.7}),
    (f"{_CODER}-1.5b", 28, 28_672, 1.0, {"q8_0": 1.9, "q4_k_m": STARTER_BYTES / 1e9}),
    (f"{_CODER}-0.5b", 24, 12_288, 1.0, {"q8_0": 0.7, "q4_k_m": 0.5}),
)


def _candidates() -> Iterator[ModelCandidate]:
    for name, layers, token_bytes, share, sizes in _ROWS:
        size = name.rpartition("-")[2].upper()
        for quantisation, gigabytes in sizes.items():
            shape = Shape(
                file_bytes=round(gigabytes * 1e9),
                layers=layers,
                token_bytes=token_bytes,
                longest=32_768,
                active_share=share,
            )
            if name.startswith(_CODER):
                repository = f"Qwen/Qwen2.5-Coder-{size}-Instruct-GGUF"
                file = f"{name}-instruct-{quantisation}.gguf"
            else:
                repository = "unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF"
                file = f"Qwen3-Coder-30B-A3B-Instruct-{quantisation.upper()}.gguf"
            is_starter = shape.file_bytes == STARTER_BYTES
            yield ModelCandidate(
                name=name,
                quantisation=quantisation,
                repository=repository,
                file=file,
                shape=shape,
                sha256=STARTER_SHA256 if is_starter else "",
            )


CANDIDATES: Final = tuple(_candidates())
