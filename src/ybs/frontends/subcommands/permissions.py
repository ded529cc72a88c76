"""`ybs permissions`: list and change what is allowed and refused, in this project and everywhere, without a session."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.agent.user_hooks.definitions import Hook, read
from ybs.commands.permissions import answer
from ybs.commands.reports import cells_of
from ybs.config.installed import installed
from ybs.frontends.headless.output import tell, warn, write, write_json, write_table
from ybs.frontends.layout import lines_of
from ybs.security.policy.policy import Policy
from ybs.session.checking import tools_in
from ybs.session.plugins import with_plugins
from ybs.session.settings import load_settings
from ybs.trust.project_rules import ProjectRules

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options

#: Where a rule is kept that says nothing about it: there is no session to keep it for.
_KEPT = ("project", "user")


def permissions(arguments: "Namespace", options: "Options") -> int:
    """Do it and return the exit code. Raises ConfigError and OSError."""
    loaded, action, words = load_settings(options), arguments.action, arguments.words
    project = ProjectRules(options.host, options.folder)
    policy = Policy(loaded.config.safety, project=project)
    if action in ("allow", "deny") and not set(words[:1]) & set(_KEPT):
        words = ["project", *words]
    more = tools_in(with_plugins(options, installed()))
    reply = answer(policy, loaded, options.folder, " ".join([action, *words]), more)
    if reply.is_error:
        tell(f"ybs: {reply.text.replace('/permissions', 'ybs permissions')}")
        return 2
    if arguments.format == "json":
        rules = [(rule.kind, rule.text, rule.origin) for rule in policy.rules.listed]
        write_json([{"kind": k, "rule": text, "origin": origin} for k, text, origin in rules])
        return 0
    for line in lines_of(replace(reply, notes=()), 100):
        write(line)
    if warning := policy.rules.warning:
        tell(f"ybs: {warning}")
    return 0


def hooks(arguments: "Namespace", options: "Options") -> int:
    """Print the hooks; exit code 1 where some cannot be used."""
    loaded = load_settings(options)
    found = read(loaded.config.hooks)
    if arguments.format == "json":
        write_json({"hooks": [_data(hook) for hook in found.hooks], "problems": found.problems})
    else:
        write_table([cells_of(hook) for hook in found.hooks])
        for problem in found.problems:
            tell(problem)
        if not found.hooks and not found.problems:
            tell("There are no hooks in the settings.")
    warn(loaded.warnings)
    return int(bool(found.problems))


def _data(hook: Hook) -> dict[str, object]:
    return {
        "event": hook.event,
        "matcher": hook.matcher,
        "if": hook.condition,
        "source": hook.source,
        "command": hook.command,
        "timeout": hook.seconds,
        "async": hook.is_async,
    }
