"""`ybs permissions`: what is allowed and refused in this project and everywhere, listed and changed without a session."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.commands.permissions import answer
from ybs.config.installed import installed
from ybs.frontends.headless.output import tell, write, write_json
from ybs.frontends.layout import lines_of
from ybs.security.policy.policy import Policy
from ybs.session.checking import tools_in
from ybs.session.plugins import with_plugins
from ybs.trust.project_rules import ProjectRules

if TYPE_CHECKING:
    from ybs.config.layers import Loaded
    from ybs.session.options import Options

#: Where a rule is kept that says nothing about it: there is no session to keep it for.
_KEPT = ("project", "user")


def permissions(
    options: "Options", loaded: "Loaded", action: str, words: Sequence[str], *, is_json: bool
) -> int:
    """Do it and return the exit code. Raises ConfigError and OSError."""
    project = ProjectRules(options.host, options.folder)
    policy = Policy(loaded.config.safety, project=project)
    if action in ("allow", "deny") and not set(words[:1]) & set(_KEPT):
        words = ["project", *words]
    more = tools_in(with_plugins(options, installed()))
    reply = answer(policy, loaded, options.folder, " ".join([action, *words]), more)
    if reply.is_error:
        tell(f"ybs: {reply.text.replace('/permissions', 'ybs permissions')}")
        return 2
    if is_json:
        rules = [(rule.kind, rule.text, rule.origin) for rule in policy.standing.listed]
        write_json([{"kind": k, "rule": text, "origin": origin} for k, text, origin in rules])
        return 0
    for line in lines_of(replace(reply, notes=()), 100):
        write(line)
    if warning := policy.standing.warning:
        tell(f"ybs: {warning}")
    return 0
