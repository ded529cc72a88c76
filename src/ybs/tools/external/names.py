"""List the possible names of external tools without running one: for rules about tools that were not asked yet."""

import os
from collections.abc import Iterator
from pathlib import Path

from ybs.config.host import Host
from ybs.config.paths import SIDECAR
from ybs.config.schema import ToolsSettings
from ybs.core.lazy import lazy
from ybs.security.paths.opening import read_beginning
from ybs.tools.external.finding import MOST_FILES

_MOST_BYTES = 200_000
#: A program tells its name in quotes, Python code also by a function.
_NAME = lazy(rb"""["']([A-Za-z][\w-]{1,63})["']|\bdef ([A-Za-z]\w{0,63})\(""")


def possible_names(tools: ToolsSettings, host: Host, folder: Path) -> Iterator[str]:
    """Yield the names of the files in the folders of tools, and those that stand in them; of projects not trusted too."""
    for place in tools.search_paths:
        try:
            with os.scandir(host.expand(place, folder)) as entries:
                files = [each.path for each in entries if each.name[:1] != "."][:MOST_FILES]
        except OSError:
            continue
        for file in files:
            name = Path(file).name.removesuffix(SIDECAR).partition(".")[0]
            yield from (name, name.replace("-", "_"))
            yield from _names_in(file)


def _names_in(file: str) -> Iterator[str]:
    try:
        data = read_beginning(os.path.realpath(file), _MOST_BYTES) or b""
    except (OSError, ValueError):
        return
    for match in _NAME().finditer(data):
        yield (match[1] or match[2]).decode()
