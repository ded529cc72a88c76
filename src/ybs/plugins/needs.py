"""Describe a plugin's effects in plain words for the person who decides about it."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ybs.agent.user_hooks.definitions import Hook, read
from ybs.config.document import visible
from ybs.config.front_matter import (
    INHERITED,
    BadFrontMatter,
    fields,
    fork_of,
    name_of,
    split,
    text_of,
    without_effect,
)
from ybs.config.paths import SIDECAR, sidecar_of
from ybs.config.template import commands_in, parts_of
from ybs.config.tool_definition import Definition, Described
from ybs.core.wording import listed, plural
from ybs.plugins.content import PluginFiles
from ybs.plugins.in_settings import server_needs
from ybs.plugins.parts import Parts
from ybs.tools.skills import HEAD_BYTES, BadSkill, described
from ybs.trust.wording import called_and_needs, plain

_COMMAND = re.compile(r"!`([^`\n]+)`")
_USED_OF_AGENTS = ("model",)


def needs_of(content: PluginFiles, parts: Parts) -> Iterator[str]:
    """Yield a line for each thing that the plugin brings, with what it runs and what it needs."""
    if parts.commands:
        names = listed(
            (f"/{each.rpartition('/')[2].removesuffix('.md')}" for each in parts.commands), 12
        )
        yield f"adds {plural(len(parts.commands), 'command')}: {names}"
    yield from _programs_in_commands(content, parts)
    if parts.agents:
        names = listed((_kind(content, parts, each) for each in parts.agents), 12)
        yield f"adds {plural(len(parts.agents), 'kind')} of sub-agents: {names}"
    yield from _skills(content, parts)
    found = read(parts.hooks, source="plugin")
    yield from dict.fromkeys(map(_hook, found.hooks))
    yield from (_tool(path, described) for path, described in parts.tools.items())
    yield from _idle_sidecars(content, parts)
    yield from server_needs(parts.servers)
    yield from _heads(content, parts)
    yield from (f"ignored: {problem}" for problem in (*parts.problems, *found.problems))
    if parts.unused:
        yield f"not used by ybs yet: {', '.join(parts.unused)}"


def _hook(hook: Hook) -> str:
    condition = f" if {hook.condition}" if hook.condition else ""
    where = f"{hook.event} {hook.matcher}".rstrip() + condition
    return f"runs at {where}, in the sandbox: {plain(hook.command)}"


def _kind(content: PluginFiles, parts: Parts, path: str) -> str:
    said, _ = parts_of(content.files[path].data)
    return f"{parts.name}:{visible(name_of(said, path))}"


def _skills(content: PluginFiles, parts: Parts) -> Iterator[str]:
    names: list[str] = []
    for path in parts.skill_files:
        try:
            data = content.files[path].data[:HEAD_BYTES]
            names.append(described(data, Path(path).parent, path).name)
        except BadSkill as error:
            yield f"ignored: {path}: {error}"
    if names:
        full = listed((f"{parts.name}:{each}" for each in names), 12)
        yield f"adds {plural(len(names), 'skill')} for the model: {full}"


def _programs_in_commands(content: PluginFiles, parts: Parts) -> Iterator[str]:
    for path in parts.commands:
        for command in commands_in(content.files[path].data):
            yield f"runs when you type the command of {path}, where the mode allows it: {plain(command)}"


def _heads(content: PluginFiles, parts: Parts) -> Iterator[str]:
    """Yield a line about each front matter that cannot be read or names a model, and one about what has no effect."""
    counts: Counter[str] = Counter()
    for path in (*parts.commands, *parts.skill_files, *parts.agents):
        used = _USED_OF_AGENTS if path in parts.agents else ()
        try:
            head, body = split(content.files[path].data.decode(errors="replace"))
            said = fields(head)
        except BadFrontMatter as error:
            if path in parts.agents:
                yield f"ignored: {path} {error}"
            continue
        model = text_of(said, "model")
        if (used or fork_of(said) is not None) and model not in INHERITED:
            yield f"has sub-agents use {plain(model)}, if your provider has it or your settings name it: {path}"
        counts.update(without_effect(said, used))
        counts["!`commands`"] += path in parts.skill_files and bool(_COMMAND.search(body))
    if counts := +counts:
        each = (f"{name} ({plural(count, 'file')})" for name, count in sorted(counts.items()))
        yield f"without effect in ybs: {', '.join(each)}"


def _idle_sidecars(content: PluginFiles, parts: Parts) -> Iterator[str]:
    used = {sidecar_of(path, content.files.__contains__) for path in parts.tools}
    for path in content.files:
        if path.startswith("tools/") and path.endswith(SIDECAR) and path not in used:
            yield f"ignored: {path}, which describes no program that can be run"


def _tool(path: str, described: Described | None) -> str:
    match described:
        case None:
            rule = "unless a rule of yours allows a tool of its name"
            return f"lets the model run {path}; its needs are asked about before it runs, {rule}"
        case Definition() as tool:
            return f"lets the model run {path}{called_and_needs(tool, path)}"
        case why:
            return f"ignored: {path}: {why}"
