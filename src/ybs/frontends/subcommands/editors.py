"""`ybs setup editor`: what the settings of an editor need to have ybs, printed, and written where that is asked for."""

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from ybs.config.host import Host
from ybs.config.tree import is_object
from ybs.core.errors import ConfigError
from ybs.frontends.headless.output import tell, write
from ybs.security.launcher import own_program

_COMMENT: Final = re.compile(r"\s+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_NEOVIM: Final = """\
-- CodeCompanion (choose the adapter ybs) and avante.nvim (choose the provider ybs)
local has_companion, companion = pcall(require, "codecompanion.config")
if has_companion then
  companion.adapters.acp.ybs = function()
    return require("codecompanion.adapters").extend("opencode", {{
      name = "ybs",
      formatted_name = "ybs",
      commands = {{ default = {{ {command}, "acp" }} }},
    }})
  end
end
local has_avante, avante = pcall(require, "avante.config")
if has_avante then
  -- avante allows every call by itself, unless behaviour.auto_approve_tool_permissions is false
  avante.override({{ acp_providers = {{ ybs = {{ command = {command}, args = {{ "acp" }} }} }} }})
end
"""
_EMACS: Final = """\
;; ybs in agent-shell: M-x agent-shell, then choose ybs
(with-eval-after-load 'agent-shell
  (add-to-list 'agent-shell-agent-configs
               (agent-shell-make-agent-config
                :identifier 'ybs
                :mode-line-name "ybs"
                :buffer-name "ybs"
                :shell-prompt "ybs> "
                :shell-prompt-regexp "ybs> "
                :client-maker (lambda (buffer)
                                (agent-shell--make-acp-client
                                 :command {command}
                                 :command-params '("acp")
                                 :context-buffer buffer)))
               t))
"""


class Editor(Struct, frozen=True):
    """An editor: its name, the file that its settings stand in, what they need, and how that is put into a text of the file."""

    name: str
    file: Path
    settings: str
    put: Callable[[str, str], str]


def editors_of(host: Host) -> dict[str, Editor]:
    """Return the editors that can have ybs, by the words that name them."""
    named = host.environ.get("XDG_CONFIG_HOME", "")
    config = Path(named) if named.startswith("/") else host.home / ".config"
    command = own_program()
    entry: dict[str, Any] = {"command": command, "args": ["acp"], "env": {}}
    places = (host.home / ".emacs", host.home / ".emacs.d/init.el", config / "emacs/init.el")
    emacs = next((each for each in places if each.exists()), places[1])
    quoted = json.dumps(command)
    lua = _NEOVIM.format(command=quoted)
    return {
        "zed": _json("Zed", config / "zed/settings.json", {"type": "custom", **entry}),
        "jetbrains": _json("JetBrains IDEs", host.home / ".jetbrains/acp.json", entry),
        "neovim": Editor("Neovim", config / "nvim/after/plugin/ybs.lua", lua, lambda _, new: new),
        "emacs": Editor("Emacs", emacs, _EMACS.format(command=quoted), _appended),
    }


def set_up_editors(host: Host, names: Sequence[str], *, writes: bool) -> int:
    """Print the settings of the editors, all without names, and write them if asked to. Return the exit code.

    Without names those alone are written that have a folder of settings here. 1: something could not be written.
    """
    known, code = editors_of(host), 0
    for name in names or known:
        editor = known[name]
        place = host.short(str(editor.file))
        write(f"{editor.name}: {place}\n\n{editor.settings}")
        if not writes:
            continue
        if not names and not _is_here(editor, host):
            tell(
                f"{editor.name} has no settings here; `ybs setup editor {name} --write` makes them."
            )
            continue
        try:
            is_new = _enter(editor)
            tell(f"{place}: {'written' if is_new else 'it has this already'}.")
        except (ConfigError, OSError) as error:
            tell(f"ybs: {place} was not changed: {error}")
            code = 1
    return code


def _is_here(editor: Editor, host: Host) -> bool:
    folder = editor.file.parents[2] if editor.name == "Neovim" else editor.file.parent
    return editor.file.exists() or (folder != host.home and folder.is_dir())


def _enter(editor: Editor) -> bool:
    """Put the settings into the file, whose links are followed; return whether that changed it. Raises ConfigError and OSError."""
    path = editor.file.resolve()
    before = path.read_text("utf-8") if path.exists() else ""
    after = editor.put(before, editor.settings)
    if after == before:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.ybs-{os.getpid()}")
    try:
        beside.write_text(after, "utf-8")
        if path.exists():
            beside.chmod(path.stat().st_mode)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return True


def _json(name: str, file: Path, entry: dict[str, Any]) -> Editor:
    settings = json.dumps({"agent_servers": {"ybs": entry}}, indent=2)
    return Editor(name, file, settings, _merged)


def _merged(text: str, settings: str) -> str:
    """Return a file of settings with others in it. One with comments keeps them. Raises ConfigError where that cannot be done."""
    added = json.loads(settings)
    try:
        tree: Any = json.loads(text or "{}")
    except ValueError:
        return _inserted(text, settings)
    servers = tree.setdefault("agent_servers", {}) if is_object(tree) else None
    if not is_object(servers):
        raise ConfigError("it is not an object of settings")
    if servers.get("ybs") == added["agent_servers"]["ybs"]:
        return text
    servers["ybs"] = added["agent_servers"]["ybs"]
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


def _inserted(text: str, settings: str) -> str:
    start = 0
    while found := _COMMENT.match(text, start):
        start = found.end()
    if text[start : start + 1] != "{" or '"agent_servers"' in text:
        raise ConfigError("it has comments and agents of its own; add the entry by hand")
    inner = settings.strip().removeprefix("{").removesuffix("}").rstrip()
    return f"{text[: start + 1]}{inner},{text[start + 1 :]}"


def _appended(text: str, settings: str) -> str:
    if settings in text:
        return text
    return f"{text.rstrip()}\n\n{settings}".lstrip()
