"""What a plugin would do, in plain words for the person who decides about it."""

import re
from collections.abc import Iterator

from ybs.agent.user_hooks.definitions import Hook, read
from ybs.config.document import visible
from ybs.core.wording import listed, plural
from ybs.plugins.content import Content
from ybs.plugins.parts import Parts
from ybs.plugins.servers import server_needs
from ybs.tools.external.definition import BadDefinition, defined

_COMMAND = re.compile(r"!`([^`\n]+)`")
_MOST_SHOWN = 20


def needs_of(content: Content, parts: Parts) -> Iterator[str]:
    """Yield a line for each thing that the plugin brings, with what it runs and what it needs."""
    if parts.commands:
        names = listed(
            (f"/{each.rpartition('/')[2].removesuffix('.md')}" for each in parts.commands), 12
        )
        yield f"adds {plural(len(parts.commands), 'command')}: {names}"
    yield from _programs_in_commands(content, parts)
    if parts.agents:
        names = listed((each.rpartition("/")[2].removesuffix(".md") for each in parts.agents), 12)
        yield f"adds {plural(len(parts.agents), 'kind')} of sub-agents: {names}"
    if parts.skills:
        yield f"adds {plural(len(parts.skills), 'skill')} for the model: {listed(parts.skills, 12)}"
    found = read(parts.hooks, source="plugin")
    yield from dict.fromkeys(map(_hook, found.hooks))
    yield from (_tool(content, path) for path in parts.tools)
    yield from server_needs(parts.servers)
    yield from (f"ignored: {problem}" for problem in (*parts.problems, *found.problems))
    if parts.unused:
        yield f"not used by ybs yet: {', '.join(parts.unused)}"


def _hook(hook: Hook) -> str:
    condition = f" if {hook.condition}" if hook.condition else ""
    where = f"{hook.event} {hook.matcher}".rstrip() + condition
    return f"runs at {where}, in the sandbox: {visible(hook.command)}"


def _programs_in_commands(content: Content, parts: Parts) -> Iterator[str]:
    for path in parts.commands:
        text = content.files[path].data.decode(errors="replace")
        for found in _COMMAND.findall(text)[:_MOST_SHOWN]:
            yield f"runs when you type the command of {path}, in the sandbox: {visible(found)}"


def _tool(content: Content, path: str) -> str:
    described = content.files.get(f"{path}.tool.json")
    if described is None:
        return f"lets the model run {path}; its needs are asked about before it runs"
    try:
        needs = defined(described.data, name="tool", usual="argv").needs.words
    except BadDefinition as error:
        return f"ignored: {path}: {error}"
    return f"lets the model run {path}" + (f", which needs {needs}" if needs else "")
