"""Languages: by suffix, name, first line and, for headers, by what stands in them."""

from rows import every_row
from ybs.repo_map.languages import LANGUAGES, is_packed, is_text_source, language_of, utf8_of


@every_row(
    "path, head, language",
    [
        ("", b"", ""),
        ("Makefile", b"all:\n", ""),
        ("notes.md", b"#!/bin/sh\n", ""),
        ("a/.py", b"", ""),
        ("run", b"", ""),
        ("run", b"#!", ""),
        ("run", b"#!/usr/bin/env", ""),
        ("run", b"#!/usr/bin/perl\n", ""),
        ("run", b"\x7fELF", ""),
        ("python/run", b"#! /usr/bin/env -S python3.11 -u\n", "python"),
        ("run", b"#!/bin/bash -e\r\n", "bash"),
        ("run", b"#!/usr/bin/env A=1 node\n", "javascript"),
        ("run", b"#!/usr/local/bin/ruby\n", "ruby"),
        ("a/b.PY", b"", "python"),
        ("a.d.ts", b"", "typescript"),
        ("a.tsx", b"", "tsx"),
        ("a.mjs", b"", "javascript"),
        ("a.h", b"#include <stdio.h>\nint f(void); /* the class of it */\n", "c"),
        ("a.h", b"\nclass A;\n", "cpp"),
        ("a.h", b"namespace a {\n", "cpp"),
        ("a.h", b"template <class T>\n", "cpp"),
        ("a.hpp", b"", "cpp"),
        ("a.inc", b"<?php\n", "php"),
        ("a.inc", b"int x;\n", ""),
        ("Rakefile", b"", "ruby"),
        (".bashrc", b"", "bash"),
        ("x\udcff.cs", b"", "csharp"),
    ],
)
def test_the_language_of_a_file(path: str, head: bytes, language: str) -> None:
    assert language_of(path, head) == language
    assert language in (*LANGUAGES, "")


@every_row(
    "paths, is_worth_it",
    [
        ("a.png a/b.min.js a.lock package-lock.json go.sum app.js.map x_pb2.py a.csv a.PDF", False),
        ("a.py README LICENSE Makefile a.md b.rst c.toml d.html e.css f.sql g.swift h.kt", True),
        ("package.json .gitignore Dockerfile a.vue a.unheard-of .env a/min.js", True),
    ],
)
def test_what_is_worth_reading(paths: str, *, is_worth_it: bool) -> None:
    wrong = [path for path in paths.split() if is_text_source(path) is not is_worth_it]
    assert wrong == []


def test_a_packed_text_has_lines_too_long_to_be_read() -> None:
    assert is_packed(b"function f(){g()};" * 1_000)
    assert not is_packed(b"")
    assert not is_packed(b"x" * 2_000)
    assert not is_packed(b"def f(): pass\n" * 1_000)


def test_a_byte_order_mark_and_utf16_become_plain_utf8() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        assert utf8_of("größe".encode(encoding)) == "größe".encode()
    assert utf8_of(b"\xff\xfe\x00") == "\ufffd".encode()
    assert utf8_of(b"\xe9") == b"\xe9"
