"""What holds in every session of the gateway, in chats and by the clock: nothing that was allowed at a terminal, and all that was made stricter there."""

import os
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import asdict, replace

from ybs.config.layers import Loaded
from ybs.config.schema import NeverIncognito, SafetySettings
from ybs.config.tree import DEFAULT
from ybs.core.errors import ConfigError
from ybs.frontends.serve.bounds import strictest
from ybs.security.sandbox.places import lies_in
from ybs.session.options import SHIPPED, Options

_WRITES: Final = (
    "The gateway writes down what is said in chats, so it does not serve where incognito.enabled is set. "
    "`ybs config set incognito.enabled false` has it serve; `ybs --incognito` is incognito without the setting."
)


def unattended(
    options: Options, folder: Path, *, mode: str = "", allow: tuple[str, ...] = ()
) -> Options:
    """Return the options of a session in a folder that nobody at a terminal is asked in.

    What `mode` and `allow` say was agreed to for it; without a mode it is the one of the settings where that is stricter than `ask`.
    """
    return replace(
        options,
        folder=folder,
        loaded=None,
        overrides={**options.overrides, **({"safety.mode": mode} if mode else {})},
        held=partial(_held, folder=folder, has_mode=bool(mode)),
        allow=allow,
        add_dirs=(),
        sandbox=True,
        at_terminal=False,
        resume=None,
        fork=False,
        output_schema=None,
    )


def _held(loaded: Loaded, *, folder: Path, has_mode: bool) -> Loaded:
    """Return the settings with the shipped ones of safety, and those of the person that are stricter. Raises ConfigError where incognito is wanted."""
    config, host = loaded.config, loaded.host
    if config.incognito.enabled:
        raise ConfigError(_WRITES)
    now = config.safety
    safety = strictest(SHIPPED, now)
    if has_mode:
        safety = replace(safety, mode=now.mode)
    real = os.path.realpath(folder)
    named = (os.path.realpath(host.expand(each, folder)) for each in now.sandbox_allowed_paths)
    if any(lies_in(real, each) for each in named):  # the settings may write its folder in many ways
        safety = replace(safety, sandbox_allowed_paths=SHIPPED.sandbox_allowed_paths)
    incognito = NeverIncognito(local_only=config.incognito.local_only)
    return replace(
        loaded,
        config=replace(config, safety=safety, incognito=incognito),
        origins={**loaded.origins, **dict.fromkeys(_shipped(now, safety), DEFAULT)},
    )


def _shipped(now: SafetySettings, safety: SafetySettings) -> list[str]:
    """Return the keys of the settings that are not the person's here. Whose list names commands has each of them asked about."""
    before = asdict(now)
    changed = {name for name, value in asdict(safety).items() if value != before[name]}
    if "run_shell" in now.require_confirmation:
        changed.discard("require_confirmation")
    return [f"safety.{name}" for name in changed]
