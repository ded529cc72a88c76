"""The models that ybs offers to download for a machine, the best first: open weights under Apache-2.0 that can call tools."""

from collections.abc import Iterator
from typing import Final

from ybs.providers.local.choice import Candidate, Shape
from ybs.providers.local.models import STARTER_BYTES, STARTER_SHA256

_CODER: Final = "qwen2.5-coder"
#: Name, layers, bytes of one token in the window, share that is read for a token, and gigabytes of each quantisation.
_ROWS: Final = (
    ("qwen3-coder-30b", 48, 98_304, 0.11, {"q8_0": 32.5, "q6_k": 25.1, "q4_k_m": 18.6}),
    (f"{_CODER}-14b", 48, 196_608, 1.0, {"q8_0": 15.7, "q6_k": 12.2, "q4_k_m": 9.0}),
    (f"{_CODER}-7b", 28, 57_344, 1.0, {"q8_0": 8.1, "q6_k": 6.3, "q4_k_m": 4.7}),
    (f"{_CODER}-1.5b", 28, 28_672, 1.0, {"q8_0": 1.9, "q4_k_m": STARTER_BYTES / 1e9}),
    (f"{_CODER}-0.5b", 24, 12_288, 1.0, {"q8_0": 0.7, "q4_k_m": 0.5}),
)


def _candidates() -> Iterator[Candidate]:
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
            yield Candidate(
                name=name,
                quantisation=quantisation,
                repository=repository,
                file=file,
                shape=shape,
                sha256=STARTER_SHA256 if is_starter else "",
            )


CANDIDATES: Final = tuple(_candidates())
