"""Describe a plugin's effects in plain words for the person who decides about it."""

import re
from collections import Counter
from collections.abc import Iterator

from ybs.agent.user_hooks.definitions import Hook, read
from ybs.config.front_matter import (
    INHERITED,
    BadFrontMatter,
    fields,
    fork_of,
    split,
    text_of,
    without_effect,
)
from ybs.config.paths import sidecar_of
from ybs.config.template import commands_in
from ybs.core.wording import listed, plural
from ybs.plugins.content import PluginFiles
from ybs.plugins.in_settings import server_needs
from ybs.plugins.parts import Parts
from ybs.tools.external.definition import BadDefinition, defined
from ybs.trust.wording import plain

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
        names = listed((_full(parts, each) for each in parts.agents), 12)
        yield f"adds {plural(len(parts.agents), 'kind')} of sub-agents: {names}"
    if parts.skills:
        names = listed((f"{parts.name}:{each}" for each in parts.skills), 12)
        yield f"adds {plural(len(parts.skills), 'skill')} for the model: {names}"
    found = read(parts.hooks, source="plugin")
    yield from dict.fromkeys(map(_hook, found.hooks))
    yield from (_tool(content, path) for path in parts.tools)
    yield from server_needs(parts.servers)
    yield from _heads(content, parts)
    yield from (f"ignored: {problem}" for problem in (*parts.problems, *found.problems))
    if parts.unused:
        yield f"not used by ybs yet: {', '.join(parts.unused)}"


def _hook(hook: Hook) -> str:
    condition = f" if {hook.condition}" if hook.condition else ""
    where = f"{hook.event} {hook.matcher}".rstrip() + condition
    return f"runs at {where}, in the sandbox: {plain(hook.command)}"


def _full(parts: Parts, path: str) -> str:
    return f"{parts.name}:{path.rpartition('/')[2].removesuffix('.md')}"


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
            if path not in parts.commands:
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


def _tool(content: PluginFiles, path: str) -> str:
    described = content.files.get(sidecar_of(path, content.files.__contains__))
    if described is None:
        return f"lets the model run {path}; its needs are asked about before it runs"
    try:
        needs = defined(described.data, name="tool", usual="argv").needs.words
    except BadDefinition as error:
        return f"ignored: {path}: {error}"
    return f"lets the model run {path}" + (f", which needs {needs}" if needs else "")
