"""The settings of other agents, in each one's own form."""

from pathlib import Path
from typing import Any

import pytest

from hosts import host_at
from rows import every_row
from ybs.tools.mcp.importing import Unreadable, found_in, known_files
from ybs.tools.mcp.settings import server_of

CLAUDE = """{
  "numStartups": 3,
  "mcpServers": {"files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"KEY": "${KEY}"}},
                 "far": {"type": "http", "url": "https://far/mcp", "headers": {"X": "1"},
                         "oauth": {"clientId": "me", "callbackPort": 8123}}},
  "projects": {"/work/demo": {"mcpServers": {"mine": {"command": "mine"}}, "history": []},
               "/work/other": {"mcpServers": {"theirs": {"command": "theirs"}}}}
}"""
CURSOR = """{"mcpServers": {"db": {"command": "uvx", "args": ["db", "${workspaceFolder}/x"], "env": {"T": "${env:TOKEN}"}},
  "web": {"url": "https://web/mcp"}}}"""
DESKTOP = (
    '{"globalShortcut": "", "mcpServers": {"d": {"command": "docker", "args": ["run", "-i", "x"]}}}'
)
WINDSURF = """{"mcpServers": {"git hub!": {"serverUrl": "https://git/mcp", "headers": {"A": "Bearer ${env:T}"}, "disabled": true},
  "some": {"command": "s", "disabledTools": ["rm"]}, "whole": {"command": "w", "disabledTools": []}}}"""
VS_CODE = """{
  // asked for once
  "inputs": [{"type": "promptString", "id": "api-key", "description": "Key", "password": true},],
  "servers": {
    "one": {"type": "stdio", "command": "node", "args": ["${userHome}/one.js"], "env": {"K": "${input:api-key}",},}, /* and
    more */
    "two": {"type": "http", "url": "https://two//mcp"},
  },
}"""
VS_CODE_SETTINGS = (
    '{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"s": {"command": "s"}}}}'
)
CODEX = """
model = "gpt-5"
[mcp_servers.docs]
command = "npx"
args = ["docs"]
startup_timeout_sec = 20
tool_timeout_sec = 90
enabled_tools = ["find", "drop"]
disabled_tools = ["drop"]
[mcp_servers.docs.env]
A = "b"
[mcp_servers.hub]
url = "https://hub/mcp"
bearer_token_env_var = "HUB_TOKEN"
http_headers = { X = "1" }
env_http_headers = { Y = "TEAM" }
enabled = false
"""
GEMINI = """{"selectedAuthType": "oauth", "mcpServers": {
  "g": {"httpUrl": "https://g/mcp", "timeout": 5000, "trust": true, "includeTools": ["a"]},
  "most": {"command": "m", "excludeTools": ["delete_repo"]},
  "local": {"command": "python", "args": ["s.py"], "cwd": "."}}}"""
OPENCODE = """{"$schema": "https://opencode.ai/config.json", "mcp": {
  "l": {"type": "local", "command": ["bun", "x", "thing"], "environment": {"A": "{env:A}"}, "enabled": true},
  "r": {"type": "remote", "url": "https://r/mcp", "headers": {"H": "{env:H}"}, "oauth": {"clientId": "c", "scope": "s"}}}}"""
ZED = """{
  "theme": "One", // comment
  "context_servers": {"new": {"source": "custom", "command": "n", "args": ["1"], "env": {"A": "b"}},
    "old": {"command": {"path": "o", "args": ["2"], "env": null}, "settings": {}},
    "extension": {"source": "extension", "settings": {}}}
}"""
EVERY = {
    "claude.json": (
        CLAUDE,
        {
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "files"], "env": {"KEY": "${KEY}"}},
            "far": {
                "type": "http", "url": "https://far/mcp", "headers": {"X": "1"},
                "oauth": {"client_id": "me", "callback_port": 8123},
            },
            "mine": {"command": "mine"},
        },
    ),
    "cursor.json": (
        CURSOR,
        {
            "db": {"command": "uvx", "args": ["db", "./x"], "env": {"T": "${TOKEN}"}},
            "web": {"url": "https://web/mcp"},
        },
    ),
    "claude_desktop_config.json": (DESKTOP, {"d": {"command": "docker", "args": ["run", "-i", "x"]}}),
    "windsurf.json": (
        WINDSURF,
        {"git-hub": {"serverUrl": "https://git/mcp", "headers": {"A": "Bearer ${T}"}, "disabled": True},
         "some": {"command": "s", "enabled": False}, "whole": {"command": "w"}},
    ),
    "vscode.json": (
        VS_CODE,
        {
            "one": {"type": "stdio", "command": "node", "args": ["${HOME}/one.js"], "env": {"K": "${API_KEY}"}},
            "two": {"type": "http", "url": "https://two//mcp"},
        },
    ),
    "vscode_settings.json": (VS_CODE_SETTINGS, {"s": {"command": "s"}}),
    "codex.toml": (
        CODEX,
        {
            "docs": {
                "command": "npx", "args": ["docs"], "env": {"A": "b"},
                "tools": ["find"], "timeout_seconds": 90, "start_seconds": 20,
            },
            "hub": {
                "url": "https://hub/mcp", "enabled": False,
                "headers": {"X": "1", "Y": "${TEAM}", "Authorization": "Bearer ${HUB_TOKEN}"},
            },
        },
    ),
    "gemini.json": (
        GEMINI,
        {
            "g": {"httpUrl": "https://g/mcp", "timeout_seconds": 5, "tools": ["a"]},
            "most": {"command": "m", "enabled": False},
            "local": {"command": "python", "args": ["s.py"]},
        },
    ),
    "opencode.json": (
        OPENCODE,
        {
            "l": {"type": "local", "command": ["bun", "x", "thing"], "environment": {"A": "${A}"}, "enabled": True},
            "r": {
                "type": "remote", "url": "https://r/mcp", "headers": {"H": "${H}"},
                "oauth": {"client_id": "c", "scopes": "s"},
            },
        },
    ),
    "zed.json": (
        ZED,
        {"new": {"command": "n", "args": ["1"], "env": {"A": "b"}}, "old": {"command": "o", "args": ["2"]}},
    ),
}  # fmt: skip


@every_row("name", EVERY)
def test_each_form_is_read_and_gives_servers_that_can_be_used(tmp_path: Path, name: str):
    text, expected = EVERY[name]
    file = tmp_path / name
    file.write_text(text)
    found = found_in(file, Path("/work/demo"))
    assert found == expected
    for each, entry in found.items():
        assert server_of(each, entry).name == each


BROKEN: list[tuple[str, Any, str]] = [
    ("a.json", b"{", "it is damaged: "),
    ("a.toml", b"[[[", "it is damaged: "),
    ("a.json", b"\xff\xfe\x00", "it is damaged: "),
    ("a.json", b"[" * 100_000, "it is damaged: "),
    ("a.json", b"[]", "it is not an object"),
    ("a.json", None, "No such file"),
]


@every_row("name, data, words", BROKEN)
def test_a_file_that_is_broken_says_why(tmp_path: Path, name: str, data: bytes | None, words: str):
    file = tmp_path / name
    file.unlink(missing_ok=True)
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(Unreadable, match=words):
        found_in(file, tmp_path)


def test_odd_entries_do_no_harm(tmp_path: Path):
    file = tmp_path / "a.json"
    file.write_text(
        '{"projects": [], "mcpServers": {"a": 1, "b": {"args": []}, "c": {"command": {"path": null}},'
        ' "": {"command": "x", "oauth": 1, "timeout": "1"}}}'
    )
    assert found_in(file, tmp_path) == {"server": {"command": "x"}}
    file.write_text('{"mcpServers": []}')
    assert found_in(file, tmp_path) == {}


def test_the_files_of_other_agents_are_found_in_the_home_folder(tmp_path: Path):
    assert list(known_files(host_at(tmp_path))) == []
    for name in (".claude.json", ".codex/config.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    assert [each.name for each in known_files(host_at(tmp_path))] == [".claude.json", "config.toml"]
