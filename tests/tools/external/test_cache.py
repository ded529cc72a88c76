"""What programs said of themselves: kept by their content, which is read again only where a file has changed."""

import os
from pathlib import Path

import pytest

from ybs.tools.external import catalogue
from ybs.tools.external.catalogue import Saying, SchemaCache


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # fmt: skip
    program = tmp_path / "it"
    program.write_bytes(b"one")
    kept = SchemaCache(tmp_path / "cache.json")
    key = kept.key_of(program)
    kept.put(key, Saying(answer=b"{}"))
    kept.save()
    again = SchemaCache(tmp_path / "cache.json")
    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "key_of", None)
        assert again.key_of(program) == key
        assert again.get(key) == Saying(answer=b"{}")
    stamp = program.stat()
    program.write_bytes(b"two")
    os.utime(program, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as if it were the same
    assert again.key_of(program) != key
    copy = tmp_path / "copy"
    copy.write_bytes(b"one")
    assert again.key_of(copy) == key


@pytest.mark.parametrize("text", [b"", b"[]", b'{"sayings": {}, "version": 1}', b"\xff"])
def test_a_cache_of_no_use_is_an_empty_one(text: bytes, tmp_path: Path):
    file = tmp_path / "cache.json"
    file.write_bytes(text)
    file.chmod(0o600)
    assert SchemaCache(file).get("x") is None
