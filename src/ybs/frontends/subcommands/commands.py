"""The subcommands that print data: settings, tools, and what was found on this machine."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ybs.frontends.headless.output import warn, write, write_json
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.config.layers import Loaded
    from ybs.session.options import Options


#: The module of each subcommand in this package, and its function: loaded when it is wanted.
_COMMANDS: Final = {
    "config": ("commands", "config"),
    "sessions": ("sessions", "sessions"),
    "learn": ("learn", "learn"),
    "tools": ("tools", "tools"),
    "skills": ("skills", "skills"),
    "agents": ("agents", "agents"),
    "firewall": ("firewall", "scan"),
    "sandbox": ("sandbox", "execute"),
    "map": ("map", "map_project"),
    "trust": ("trust", "trust"),
    "permissions": ("permissions", "permissions"),
    "hooks": ("permissions", "hooks"),
    "plugin": ("plugins", "plugins"),
    "mcp": ("mcp", "mcp"),
    "models": ("models", "models"),
    "router": ("router_stats", "router"),
    "doctor": ("doctor", "doctor"),
    "version": ("commands", "version"),
}


def run_subcommand(arguments: "Namespace", options: "Options") -> int:
    """Run the subcommand that the arguments name and return its exit code."""
    module, name = _COMMANDS[arguments.subcommand]
    return getattr(import_module(f"{__package__}.{module}"), name)(arguments, options)


def version(arguments: "Namespace", _options: "Options") -> int:
    """Print the version."""
    import platform

    from ybs import __version__
    from ybs.config.host import system_name

    if arguments.format == "json":
        facts = {"python": platform.python_version(), "platform": system_name()}
        write_json({"name": "ybs", "version": __version__, **facts})
    else:
        write(f"ybs {__version__}")
    return 0


def config(arguments: "Namespace", options: "Options") -> int:
    """Show the settings, print their JSON Schema, or check them (exit code 3 when something is wrong)."""
    from ybs.config.report import json_schema

    is_json = arguments.format == "json"
    match arguments.action:
        case "schema":
            write_json(json_schema())
            return 0
        case "check":
            return check_settings(load_settings(options), options, is_json=is_json)
        case "get":
            return get_setting(load_settings(options), arguments.key, is_json=is_json)
        case "set" | "unset":
            return change_setting(options, arguments.key, arguments.value)
        case _:
            show_settings(load_settings(options), is_json=is_json, with_sources=arguments.sources)
            return 0


def get_setting(loaded: "Loaded", key: str, *, is_json: bool) -> int:
    """Print the value of one setting as it is in force, or all of a section. Raises ConfigError."""
    from ybs.config.report import show
    from ybs.config.settings_file import refuse_unknown

    rows = {row.key: row.value for row in show(loaded) if f"{row.key}.".startswith(f"{key}.")}
    if not rows:
        refuse_unknown(key)
    if is_json:
        write_json(rows.get(key, rows))
    elif key in rows:
        value = rows[key]
        write(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    else:
        for name, value in rows.items():
            write(f"{name} = {msgspec.json.encode(value).decode()}")
    return 0


def change_setting(options: "Options", key: str, text: str | None) -> int:
    """Set one setting in the user's own file, or remove it (None), and say what is in force then. Raises ConfigError."""
    from ybs.config.report import show
    from ybs.config.settings_file import fitting_value, is_set, write_settings
    from ybs.core.errors import ConfigError

    value = None if text is None else fitting_value(key, text)
    path = options.host.user_config_file
    if text is None and not is_set(key, path):
        raise ConfigError(f"{key} is not set in {path}.")
    _refuse_what_stops(options, key, value)
    path = write_settings({key: value}, path)
    write(f"{key} {'was removed from' if text is None else 'is set in'} {path}.")
    loaded = load_settings(options)
    row = next((row for row in show(loaded) if row.key == key), None)
    if row is not None and text is not None and row.origin.layer != "user":
        warn((f"{row.origin.source} sets {key} too and takes precedence.",))
    warn(loaded.warnings)
    return 0


def _refuse_what_stops(options: "Options", key: str, value: Any) -> None:
    """Raise ConfigError for a value with which no session would start."""
    from msgspec.structs import replace

    from ybs.config.installed import installed
    from ybs.core.errors import ConfigError
    from ybs.session.checking import problems_in, tools_in
    from ybs.session.plugins import with_plugins

    more = tools_in(with_plugins(options, installed()))

    def stopping(options: "Options") -> list[str]:
        found = problems_in(load_settings(options), options.folder, more=more)
        return [each.text.partition(" As it stands")[0] for each in found if each.stops]

    known = stopping(options)
    for words in stopping(replace(options, overrides={**options.overrides, key: value})):
        if words not in known:
            end = "" if words[-1:] in (".", "?") else "."
            raise ConfigError(f"{words}{end} Nothing was changed.")


def show_settings(loaded: "Loaded", *, is_json: bool, with_sources: bool) -> None:
    """Print every setting, as `key = value` or as one JSON object by dotted key."""
    from ybs.config.report import show

    rows = show(loaded)
    if is_json and with_sources:
        write_json({row.key: {"value": row.value, **_source(row.origin)} for row in rows})
    elif is_json:
        write_json({row.key: row.value for row in rows})
    else:
        for row in rows:
            value = msgspec.json.encode(row.value).decode()
            place = "  ".join(filter(None, dict.fromkeys((row.origin.layer, row.origin.source))))
            write(f"{row.key} = {value}" + (f"   ({place})" if with_sources else ""))
    warn(loaded.warnings)


def check_settings(loaded: "Loaded", options: "Options", *, is_json: bool) -> int:
    """Print what is wrong with the settings: all that can be found, and what a start stops at."""
    from ybs.config.installed import installed
    from ybs.config.report import check
    from ybs.session.checking import check_options, problems_in, tools_in
    from ybs.session.plugins import with_plugins

    whole = with_plugins(options, installed())
    check_options(whole, loaded)
    found = list(problems_in(loaded, options.folder, more=tools_in(whole)))
    problems = [*check(loaded), *(each.text for each in found)]
    if not any(each.stops for each in found) and (reason := _why_no_start(options, loaded)):
        problems.append(reason)
    for name in loaded.config.profiles:
        chosen = load_settings(whole.with_profile(name))
        found = list(problems_in(chosen, options.folder, more=tools_in(whole)))
        problems += [*check(chosen), *(each.text for each in found)]
    problems = list(dict.fromkeys(problems))
    if is_json:
        write_json({"problems": problems})
    for problem in problems if not is_json else ():
        write(problem)
    if not problems and not is_json:
        write("Nothing is wrong with the settings.")
    return 3 if problems else 0


def _why_no_start(options: "Options", loaded: "Loaded") -> str:
    """Open a session as a start does and say why that fails. That no model or key is there is not the settings' fault."""
    import asyncio

    from msgspec.structs import replace

    from ybs.agent.model_choice import NothingConfigured
    from ybs.commands.open import open_session
    from ybs.core.errors import AuthError, ConfigError
    from ybs.frontends.headless.advice import told

    try:
        session = open_session(replace(options, loaded=loaded))
    except (NothingConfigured, AuthError):
        return ""
    except ConfigError as error:
        return told(error)
    asyncio.run(session.close())
    return ""


def _source(origin: Any) -> Mapping[str, str]:
    return {"layer": origin.layer, "source": origin.source}
