"""Which program serves the model: the one in the settings, `llama-server` in PATH, or the extra `local`."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ybs.config.host import Host
from ybs.core.errors import ConfigError
from ybs.providers.local.hardware import Machine

NAME: Final = "llama-server"


def find_program(host: Host, configured: str | None, machine: Machine) -> str:
    """Return the path of the server program; empty for the one of the extra `local`, which runs in ybs's own process.

    The extra is what ybs was tested with, so it goes before PATH; but its wheel knows no graphics processors other than
    Apple's. Raises ConfigError where there is no program.
    """
    if configured:
        path = Path(host.with_home(configured))
        if not (path.is_absolute() and path.is_file() and os.access(path, os.X_OK)):
            raise ConfigError(
                f"The setting local.server is not the absolute path of a program: {configured}"
            )
        return str(path)
    has_extra = find_spec("xllamacpp") is not None
    wants_other = any(gpu.maker != "apple" for gpu in machine.gpus)
    if has_extra and not wants_other:
        return ""
    found = shutil.which(NAME, path=host.environ.get("PATH", os.defpath))
    if found and Path(found).is_absolute():
        return found
    if has_extra:
        return ""
    raise ConfigError(
        "The local model needs llama.cpp, and neither the extra `local` nor `llama-server` is installed.\n"
        "Install the extra with: pip install 'ybs[local]'\n"
        "Or install llama.cpp, so that `llama-server` is in PATH, or set local.server to its path."
    )
