"""What bounds a session, kept over a kill: it goes on with nothing looser, whatever the settings and variables say by then."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ybs.session.options import Options
from ybs.session.session import Session
from ybs.session.settings import load_settings

_Rule = Callable[[Any, Any], Any]
#: From the strictest on.
_MODES: Final = ("plan", "deny", "ask", "accept-edits", "auto", "bypass")


def _stricter(then: Any, now: Any) -> Any:
    return min(then, now, key=_MODES.index)


def _united(then: Any, now: Any) -> Any:
    return list(dict.fromkeys((*now, *then)))


def _common(then: Any, now: Any) -> Any:
    return [each for each in now if each in then]


def _either(then: Any, now: Any) -> Any:
    return then or now


def _both(then: Any, now: Any) -> Any:
    return then and now


def _least(then: Any, now: Any) -> Any:
    return min((each for each in (then, now) if each is not None), default=None)


#: What is kept, and which of what held then and what is said now holds. The last three: where the words go.
_RULES: Final[Mapping[str, _Rule]] = {
    "safety.mode": _stricter,
    "safety.sandbox_enabled": _either,
    "safety.sandbox_network": _both,
    "safety.sandbox_allowed_paths": _common,
    "safety.sandbox_blocked_paths": _united,
    "safety.require_confirmation": _united,
    "safety.ask_before_edits": _either,
    "safety.blocked_commands": _united,
    "safety.safe_commands": _common,
    "safety.outside_sandbox": _common,
    "safety.allow": _common,
    "safety.ask": _united,
    "safety.deny": _united,
    "agent.max_iterations": _least,
    "agent.max_cost_usd": _least,
    "agent.max_seconds": _least,
    "llm.provider": _either,
    "llm.model": _either,
    "llm.endpoint": _either,
}


def bounds_of(session: Session) -> dict[str, Any]:
    """Return what bounds an open session: settings by their dotted names, with the rules that were added in it."""
    environment = session.environment
    found = {key: _at(environment.loaded.config, key) for key in _RULES}
    for kind in ("ask", "deny"):
        found[f"safety.{kind}"] = [each.text for each in environment.policy.rules.of(kind)]
    return found


def bounded(options: Options, bounds: Mapping[str, Any]) -> Options:
    """Return options with which a session is held to what bounded it. What an option names itself stays. Raises ConfigError."""
    config = load_settings(options).config
    kept = dict[str, Any]()
    for key in bounds.keys() & _RULES.keys():
        now = _at(config, key)
        if (holds := _RULES[key](bounds[key], now)) != now:
            kept[key] = holds
    return replace(options, overrides={**kept, **options.overrides})


def _at(config: Any, key: str) -> Any:
    section, _, name = key.partition(".")
    return msgspec.to_builtins(getattr(getattr(config, section), name))
