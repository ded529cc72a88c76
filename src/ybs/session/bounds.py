"""What bounds the calls of a session now, whatever it began with; another environment can be held to it."""

from typing import Final

from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.config.schema import Mode, SafetySettings

#: From the strictest on.
_MODES: Final[tuple[Mode, ...]] = ("plan", "deny", "ask", "accept-edits", "auto", "bypass")


def stricter(one: Mode, other: Mode) -> Mode:
    """Return the mode that allows less."""
    return one if _MODES.index(one) < _MODES.index(other) else other


def in_force(environment: ToolEnvironment) -> SafetySettings:
    """Return the settings of safety as options and the person have changed them until now."""
    policy, sandbox = environment.policy, environment.sandbox
    rules = policy.rules
    return replace(
        environment.config.safety,
        mode=policy.mode,
        ask_before_edits=policy.asks_before_edits,
        sandbox_enabled=not sandbox.is_off,
        sandbox_network=sandbox.is_open,
        allow=tuple(each.text for each in rules.of("allow")),
        ask=tuple(each.text for each in rules.of("ask")),
        deny=tuple(each.text for each in rules.of("deny")),
    )


def hold_to(environment: ToolEnvironment, then: SafetySettings) -> None:
    """Have an environment allow no more than these settings, and ask and refuse as they do. The person may change that again."""
    policy, sandbox = environment.policy, environment.sandbox
    policy.mode = stricter(policy.mode, then.mode)
    policy.asks_before_edits |= then.ask_before_edits
    sandbox.switch(is_off=sandbox.is_off and not then.sandbox_enabled)
    sandbox.open_network(is_open=sandbox.is_open and then.sandbox_network)
    policy.rules.hold_to(then)


def for_copy(environment: ToolEnvironment, now: SafetySettings) -> SafetySettings:
    """Return what a copy of a session with the settings `now` is held to: what was made stricter in the session. Where other settings differ, they count."""
    before, then, rules = environment.config.safety, in_force(environment), environment.policy.rules
    keys = ("mode", "ask_before_edits", "sandbox_enabled", "sandbox_network")
    changed = {key: getattr(now, key) for key in keys if getattr(now, key) != getattr(before, key)}
    return replace(
        then,
        allow=(*then.allow, *set(now.allow).difference(before.allow)),
        ask=tuple(each.text for each in rules.of("ask") if each.origin != "settings"),
        deny=tuple(each.text for each in rules.of("deny") if each.origin != "settings"),
        **changed,
    )
