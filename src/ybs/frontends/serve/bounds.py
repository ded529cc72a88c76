"""What bounds a session, kept over a kill: it goes on with nothing looser, whatever the settings and variables say by then."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ybs.config.schema import SafetySettings
from ybs.core.decoding import decodable
from ybs.providers.registry import is_named_at_address
from ybs.session.bounds import hold_to, in_force, stricter
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.session.settings import load_settings

_Rule = Callable[[Any, Any], Any]


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


#: What is kept, and which of what held then and what is said now holds.
_RULES: Final[Mapping[str, _Rule]] = {
    "safety.mode": stricter,
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
}
#: Where the words go, which is kept too. A provider is kept only beside an address that was named with it: else its key would go there.
_PLACES: Final = ("llm.provider", "llm.model", "llm.endpoint")
#: What options say in place of the settings, so that a change of these is not seen behind them.
_OPTIONS: Final = ("safety.mode", "agent.max_iterations", "agent.max_cost_usd", "agent.max_seconds")
#: What the person may change in a session: it is held to that once it is open, so that they still can.
_LIVE: Final = frozenset(
    f"safety.{name}"
    for name in ("mode", "sandbox_enabled", "ask_before_edits", "allow", "ask", "deny")
)
_FOLDERS: Final = "folders"
#: Whether a prompt may hold words of others.
_GIVEN_BACK: Final = "given_back"


def strictest(then: SafetySettings, now: SafetySettings) -> SafetySettings:
    """Return for each setting the one of both that allows less. One that has no rule here is as it was `then`."""
    names = [key.removeprefix("safety.") for key in _RULES if key.startswith("safety.")]
    held = {n: _RULES[f"safety.{n}"](getattr(then, n), getattr(now, n)) for n in names}
    return msgspec.convert({**msgspec.structs.asdict(then), **held}, decodable(SafetySettings))


def bounds_of(session: Session) -> dict[str, Any]:
    """Return what bounds an open session now: settings by their dotted names, as they are in force, and the folders it works in."""
    environment = session.environment
    config = replace(environment.config, safety=in_force(environment))
    folders = [*map(str, environment.roots.folders)]
    alone = bool(config.llm.endpoint) and not is_named_at_address(config)
    places = [key for key in _PLACES if not (alone and key == "llm.provider")]
    held = {_FOLDERS: folders, _GIVEN_BACK: session.parts.composer.has_given_back}
    return held | {key: _at(config, key) for key in (*_RULES, *places)}


def settings_of(options: Options) -> dict[str, Any]:
    """Return what the settings say of what options say in their place. Raises ConfigError."""
    config = load_settings(replace(options, overrides={})).config
    return {key: _at(config, key) for key in _OPTIONS}


def tightened(
    bounds: Mapping[str, Any], then: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Return bounds with what the settings say `now` and did not say `then`, where that is stricter."""
    changed = [key for key in now if key in bounds and now[key] != then.get(key, now[key])]
    return {**bounds, **{key: _RULES[key](bounds[key], now[key]) for key in changed}}


def bounded(options: Options, bounds: Mapping[str, Any]) -> Options:
    """Return options that are no looser than what bounded a session; where its words go, an option may say. Raises ConfigError."""
    config, kept = load_settings(options).config, dict[str, Any]()
    for key in bounds.keys() & _RULES.keys() - _LIVE:
        now = _at(config, key)
        if (holds := _RULES[key](bounds[key], now)) != now:
            kept[key] = holds
    places = {key: bounds[key] for key in _PLACES if bounds.get(key)}
    is_said = not options.overrides.keys().isdisjoint(("llm.provider", "llm.endpoint"))
    if is_said or all(_at(config, key) == there for key, there in places.items()):
        places = {}  # half of a place with half of another one would be a third
    folders = bounds.get(_FOLDERS)
    added = [each for each in options.add_dirs if folders is None or str(each.resolve()) in folders]
    overrides = {**places, **options.overrides, **kept}
    return replace(options, overrides=overrides, add_dirs=tuple(added))


def hold(session: Session, bounds: Mapping[str, Any]) -> None:
    """Hold a session that was opened with bounded options to what the person may change in it."""
    safety = {key.removeprefix("safety."): bounds[key] for key in bounds.keys() & _LIVE}
    then = msgspec.convert({**safety, "sandbox_network": True}, decodable(SafetySettings))
    hold_to(session.environment, then)
    session.parts.composer.take_over(has_given_back=bool(bounds.get(_GIVEN_BACK)))


def _at(config: Any, key: str) -> Any:
    section, _, name = key.partition(".")
    return msgspec.to_builtins(getattr(getattr(config, section), name))
