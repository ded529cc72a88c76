"""Load the settings of a project with its own files: what is harmless in them always, the rest once the person trusts it."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ybs.config import layers
from ybs.config.host import Host
from ybs.config.layers import Loaded, ProjectFiles
from ybs.config.review import RunTrust

_NOTHING: Mapping[str, Any] = {}


def load(
    host: Host,
    *,
    folder: Path,
    overrides: Mapping[str, Any] = _NOTHING,
    config_file: Path | None = None,
    profile: str | None = None,
    run_trust: RunTrust | None = None,
) -> Loaded:
    """Load the settings of a host for a project's folder.

    `run_trust` trusts a project for this run, as it was when it was read first; without it, what the person trusted before holds.
    The rest is as in `ybs.config.layers`. Raises ConfigError.
    """
    loaded = layers.load(
        host,
        folder=folder,
        overrides=overrides,
        config_file=config_file,
        profile=profile,
        read_project=partial(_read_project, run_trust=run_trust),
    )
    files = loaded.review.files if loaded.review is not None else {}
    is_once = run_trust is not None and run_trust.covers(folder.resolve(), files)
    return replace(loaded, trusts_project=True) if is_once else loaded


def _read_project(
    file: Path, text: str | None, host: Host, *, run_trust: RunTrust | None
) -> ProjectFiles:
    from ybs.trust.layer import ProjectLayer  # most projects have no such files

    return ProjectLayer(file, text, run_trust=run_trust, host=host)
