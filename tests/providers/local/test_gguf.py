"""What a model file says of itself, and files that say nothing sensible."""

import struct
from pathlib import Path
from typing import Any

import pytest
from local.gguf_files import head, text, value, write_model

from rows import every_row
from ybs.core.errors import ConfigError
from ybs.providers.local.template import read_head

QWEN: dict[str, Any] = {
    "general.architecture": "qwen2",
    "general.name": "Qwen2.5 Coder",
    "qwen2.block_count": 28,
    "qwen2.context_length": 32_768,
    "qwen2.embedding_length": 1536,
    "qwen2.attention.head_count": 12,
    "qwen2.attention.head_count_kv": 2,
    "tokenizer.ggml.tokens": ["a"] * 2000,
    "tokenizer.ggml.scores": [1] * 2000,
    "tokenizer.chat_template": "{{ messages }}",
}


def test_layers_window_template_and_the_memory_of_a_token_are_read(tmp_path: Path):
    found = read_head(write_model(tmp_path / "m.gguf", QWEN, 1_000_000))
    assert (found.family, found.title, found.template) == (
        "qwen2",
        "Qwen2.5 Coder",
        "{{ messages }}",
    )
    assert (found.shape.layers, found.shape.longest) == (28, 32_768)
    assert found.shape.token_bytes == 2 * 28 * 2 * 128 * 2
    assert found.shape.file_bytes == 1_000_000


def test_a_mixture_of_experts_reads_a_part_of_itself(tmp_path: Path):
    entries = QWEN | {
        "qwen2.expert_count": 128,
        "qwen2.expert_used_count": 8,
        "qwen2.attention.key_length": 64,
    }
    shape = read_head(write_model(tmp_path / "m.gguf", entries)).shape
    assert 0.06 < shape.active_share < 0.2
    assert shape.token_bytes == 2 * 28 * 2 * 64 * 2


def test_the_largest_of_numbers_for_each_layer_counts(tmp_path: Path):
    entries = QWEN | {"qwen2.attention.head_count_kv": [2, 4, 0]}
    assert (
        read_head(write_model(tmp_path / "m.gguf", entries)).shape.token_bytes
        == 2 * 28 * 4 * 128 * 2
    )


def nested(depth: int) -> bytes:
    return struct.pack("<I", 9) + (struct.pack("<I", 9) + struct.pack("<Q", 1)) * depth


@every_row(
    "data",
    [
        b"",
        b"GGUF",
        b"GGML" + bytes(100),
        b"GGUF" + b"weights" * 10,
        head(QWEN, count=1 << 60),
        head(QWEN)[:200],
        head({"a": struct.pack("<I", 8) + struct.pack("<Q", 1 << 62)}),
        head({"a": struct.pack("<I", 99)}),
        head({"a": struct.pack("<II", 9, 8) + struct.pack("<Q", 1 << 40) + text("x")}),
        head({"a": struct.pack("<II", 9, 4) + struct.pack("<Q", 1 << 62), "b": 1}),
        head({"a": struct.pack("<II", 9, 9) + struct.pack("<Q", 5000)}),
        head({"a": nested(20_000)}),
        head({"general.architecture": "x", "x.block_count": "many", "x.context_length": 0}),
        head({"general.architecture": 7, "7.block_count": True}),
    ],
)
def test_of_a_file_without_a_sensible_head_the_size_is_known(tmp_path: Path, data: bytes):
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    shape = read_head(path).shape
    assert shape.file_bytes == len(data)
    assert shape.layers > 0
    assert shape.longest > 0
    assert shape.token_bytes > 0


def test_a_file_that_is_gone_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"gone\.gguf cannot be read"):
        read_head(tmp_path / "gone.gguf")


def test_a_text_with_half_a_character_does_no_harm(tmp_path: Path):
    broken = struct.pack("<I", 8) + struct.pack("<Q", 2) + b"a\xff"
    found = read_head(write_model(tmp_path / "m.gguf", {"general.name": broken, "other": value(1)}))
    assert found.title == "a\N{REPLACEMENT CHARACTER}"
