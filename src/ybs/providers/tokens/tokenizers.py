"""Tokenizers that are installed with their vocabulary: nothing is ever downloaded for them."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

#: A longer text is counted in pieces.
_PIECE_CHARS: Final = 50_000


class Vocabulary(Struct, frozen=True):
    """Where tiktoken takes a vocabulary from, and the SHA-256 of it."""

    url: str
    sha256: str


#: https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py
VOCABULARIES: Final = {
    "o200k_base": Vocabulary(
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": Vocabulary(
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


def is_installed(encoding: str) -> bool:
    """Return whether tiktoken is installed and seems to have the vocabulary."""
    if find_spec("tiktoken") is None:
        return False
    path = _cached(encoding)
    return path is not None and path.is_file()


def load(encoding: str) -> Callable[[str], float] | None:
    """Return what counts a text exactly, or None. Takes half a second: call it in a thread.

    tiktoken downloads a vocabulary that it does not have, or whose hash is another, so that is looked at first.
    """
    path = _cached(encoding)
    try:
        data = path.read_bytes() if path else b""
    except OSError:
        return None
    from hashlib import sha256  # slow to load

    if sha256(data).hexdigest() != VOCABULARIES[encoding].sha256:
        return None
    try:
        import tiktoken  # pyright: ignore[reportMissingImports]  # not one of the requirements
    except ImportError:
        return None
    found: Any = tiktoken  # pyright: ignore[reportUnknownVariableType]
    encode = found.get_encoding(encoding).encode_ordinary

    def count(text: str) -> float:
        starts = range(0, len(text), _PIECE_CHARS)
        return float(sum(len(encode(text[start : start + _PIECE_CHARS])) for start in starts))

    return count


def _cached(encoding: str) -> Path | None:
    """Return where tiktoken keeps the vocabulary; None where it keeps none."""
    vocabulary = VOCABULARIES.get(encoding)
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if vocabulary is None or folder == "":
        return None
    if folder is None:
        from tempfile import gettempdir  # few have set no folder and have tiktoken

        folder = str(Path(gettempdir(), "data-gym-cache"))
    from hashlib import sha1

    return Path(folder, sha1(vocabulary.url.encode(), usedforsecurity=False).hexdigest())
