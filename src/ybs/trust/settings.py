"""Load the settings of a project with its own files: what is harmless in them always, the rest once the person trusts it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ybs.config import layers
from ybs.config.host import Host
from ybs.config.layers import Loaded, ProjectFiles

_NOTHING: Mapping[str, Any] = {}


def load(
    host: Host,
    *,
    folder: Path,
    overrides: Mapping[str, Any] = _NOTHING,
    config_file: Path | None = None,
    profile: str | None = None,
    trusts_project: bool = False,
) -> Loaded:
    """Load the settings of a host for a project's folder.

    `trusts_project` trusts the project for this run, as it is now; without it, what the person trusted before holds.
    The rest is as in `ybs.config.layers`. Raises ConfigError.
    """
    loaded = layers.load(
        host,
        folder=folder,
        overrides=overrides,
        config_file=config_file,
        profile=profile,
        read_project=partial(_read_project, is_trusted=trusts_project),
    )
    return replace(loaded, trusts_project=True) if trusts_project else loaded


def _read_project(file: Path, text: str | None, host: Host, *, is_trusted: bool) -> ProjectFiles:
    from ybs.trust.layer import ProjectLayer  # most projects have no such files

    return ProjectLayer(file, text, is_trusted=is_trusted, host=host)
