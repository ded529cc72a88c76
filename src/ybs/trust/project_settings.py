"""The settings that a project's own file may change without trust: harmless ones, and stricter limits.

The rules are an allow-list. Endpoints, keys, headers, programs, folders, providers and models are not on it: a key or a
prompt could be sent to another place, or a program run, by cloning a repository and starting ybs in it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from ybs.config.addresses import is_passed_on
from ybs.config.document import SettingsDocument
from ybs.config.shape import annotation_at
from ybs.config.tree import Tree, is_list, is_object, put
from ybs.config.variables import has_reference
from ybs.core.lazy import lazy

#: Taken over as they are. Nothing here chooses where words go or what they cost: at many a provider the model's name says which company reads
#: them, and at which price, so `llm.model` is as `llm.provider` is.
INERT = {
    "version",
    "llm.temperature",
    "context.compaction_threshold",
    "git.commit_message_prefix",
    "ui.color",
    "ui.show_token_usage",
    "ui.stream_responses",
}
#: Taken over where the number is lower than the user's (no number means no limit). `llm.timeout_seconds` and `agent.retry_attempts` are not here:
#: too short a time, or too few tries, would send each turn on to the user's `llm.fallback`, or have it paid for again.
ONLY_LOWER = {
    "llm.max_tokens",
    "context.max_tokens",
    "context.repo_map_tokens",
    "context.max_tool_output_chars",
    "agent.max_iterations",
    "agent.max_cost_usd",
    "agent.max_seconds",
    *("agents.max_parallel", "agents.max_steps", "agents.max_tokens"),
    *("agents.max_cost_usd", "agents.max_seconds"),
}
#: Taken over in one direction.
ONLY_THIS = {
    "safety.sandbox_enabled": True,
    "safety.ask_before_edits": True,
    "git.auto_commit": False,
    "ui.show_tool_calls": True,
    "tools.builtin.*.enabled": False,
}
#: Added to the user's list, whatever layer that comes from.
UNITED = {
    "safety.blocked_commands",
    "safety.sandbox_blocked_paths",
    "safety.require_confirmation",
    "safety.ask",
    "safety.deny",
}
#: Taken over where the person trusts the project. Nothing else is, however often they say yes: where words go, with which key, what is a tool or a
#: profile, and how ybs looks and keeps what it keeps is the person's alone to say.
WITH_TRUST = {
    *("llm.model", "llm.effort", "llm.timeout_seconds", "llm.prompt"),
    "context.system_prompt_file",
    "safety.allow",
    "tools.builtin.*.timeout_seconds",
    "skills.only",
    *("mcpServers", "hooks"),
}

MODEL_NAME = "the plain name of a model, in letters, digits and . _ : / @ + -"
#: The signs of names of models (`org/model:8b@1`, `opus[1m]`): a program of the person's own may get the name as a part of a shell's command.
_SIGNS = lazy(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}(?:\[[A-Za-z0-9]{1,9}\])?")
#: What is no path, no address, no file that a local engine would open, and not the router's.
_NO_NAME = lazy(r"auto|.*(?:\.\.|//).*|.*\.gguf", re.I)
_ALLOWED = INERT | ONLY_LOWER | UNITED | set(ONLY_THIS)
_SECTIONS = {
    ".".join(name.split(".")[:n])
    for name in _ALLOWED | WITH_TRUST
    for n in range(1, name.count(".") + 1)
}


def rule_of(path: tuple[str, ...]) -> str:
    """Return the name under which the rules above know a setting."""
    is_tool = path[:2] == ("tools", "builtin") and len(path) == 4
    return ".".join((*path[:2], "*", path[3]) if is_tool else path)


def needing_trust(document: SettingsDocument) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the settings of a project's file, or whole sections, that need trust, with their values."""
    return ((path, value) for path, value in _entries(document.tree, ()) if _needs_trust(path))


def may_name_model(name: str) -> bool:
    """Return whether a text that is not the person's may name a model: as a name, and not as a path or a part of a shell's command."""
    is_name = _SIGNS().fullmatch(name) and not _NO_NAME().fullmatch(name)
    return bool(is_name) and not is_passed_on(name)


def take_harmless(document: SettingsDocument) -> dict[str, Any]:
    """Return the part of a project's file that needs no trust."""
    harmless: dict[str, Any] = {}
    for path, value in _entries(document.tree, ()):
        if _needs_trust(path):
            continue
        if not _is_plain(value):
            document.warn(
                path, "a project's file may not read environment variables; this is ignored"
            )
        else:
            put(harmless, path, value)
    return harmless


def take_tighter(
    document: SettingsDocument, harmless: dict[str, Any], current: Callable[[tuple[str, ...]], Any]
) -> tuple[dict[str, Any], dict[tuple[str, ...], list[str]]]:
    """Return the settings that are no wider than the user's, and the lists to unite with the user's."""
    kept: dict[str, Any] = {}
    united: dict[tuple[str, ...], list[str]] = {}
    wider: list[tuple[str, ...]] = []
    for path, value in _entries(harmless, ()):
        rule = rule_of(path)
        if is_object(value):
            continue  # an empty section
        if rule in UNITED:
            united[path] = value
        elif rule in INERT or _is_tighter(rule, value, current(path)):
            put(kept, path, value)
        elif value != current(path):
            wider.append(path)
    if wider:
        document.warn_of_all(wider, "ignored, because a project can only make this stricter")
    return kept, united


def _needs_trust(path: tuple[str, ...]) -> bool:
    is_setting = annotation_at(path) is not None  # what is none gets its own warning
    return is_setting and rule_of(path) not in _ALLOWED and not _may_hold_harmless(path)


def _is_tighter(rule: str, value: Any, current: Any) -> bool:
    if rule in ONLY_THIS:
        return value is ONLY_THIS[rule] and value is not current
    return value is not None and (current is None or value < current)


def _entries(tree: Tree, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield settings, and whole sections where nothing in them is allowed."""
    for name, value in tree.items():
        here = (*path, name)
        if is_object(value) and value and _may_hold_harmless(here):
            yield from _entries(value, here)
        else:
            yield here, value


def _may_hold_harmless(path: tuple[str, ...]) -> bool:
    if path[:2] == ("tools", "builtin"):
        return len(path) <= 3
    return ".".join(path) in _SECTIONS


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return not has_reference(value)
    return not is_list(value) or all(_is_plain(each) for each in value)
