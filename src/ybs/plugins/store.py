"""The plugins that the person has added: where they lie, where they came from, and the content that they are pinned to."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError
from ybs.plugins.content import BadPlugin, PluginFiles, read_folder, write_folder
from ybs.plugins.parts import Parts, parts_of


class Added(Struct, frozen=True, kw_only=True):
    """What is kept of one plugin: `digest` is the content that the person agreed to."""

    source: str
    digest: str
    is_enabled: bool = True


class _Record(Struct, frozen=True, kw_only=True):
    plugins: dict[str, Added] = {}
    version: int = 1


class Plugin(Struct, frozen=True, kw_only=True):
    """One plugin as it lies there. `problem` says why it is not used although it is enabled."""

    name: str
    folder: Path
    added: Added
    parts: Parts
    digest: str = ""
    problem: str = ""

    @property
    def is_used(self) -> bool:
        """Whether sessions have it."""
        return self.added.is_enabled and not self.problem


class PluginStore:
    """The plugins of a host. Raises ConfigError and OSError where they cannot be read or written."""

    def __init__(self, host: Host) -> None:
        self.folder = host.config_folder / "plugins"
        self._file = host.config_folder / "plugins.json"

    def plugins(self) -> Iterator[Plugin]:
        """Yield all plugins by name; each is compared with what was agreed to."""
        for name, added in sorted(self._read().plugins.items()):
            yield self._plugin(name, added)

    def find(self, name: str) -> Plugin:
        """Return a plugin. Raises BadPlugin where there is none of that name."""
        known = self._read().plugins
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise BadPlugin(f"there is no plugin {name!r}; there are: {names}")
        return self._plugin(name, known[name])

    def _plugin(self, name: str, added: Added) -> Plugin:
        folder = self.folder / name
        plugin = Plugin(name=name, folder=folder, added=added, parts=Parts(name=name))
        try:
            content = read_folder(folder)
            parts = parts_of(content, name)
        except (BadPlugin, OSError) as error:
            return replace(plugin, problem=f"it cannot be read: {error}")
        digest = content.digest
        problem = "" if digest == added.digest else "its files are not those that you agreed to"
        return replace(plugin, parts=parts, digest=digest, problem=problem)

    def add(self, content: PluginFiles, parts: Parts, source: str) -> Path:
        """Keep a plugin, in the place of one of the same name, and return its folder."""
        folder = self.folder / parts.name
        write_folder(content.files, folder)
        self._keep(parts.name, Added(source=source, digest=content.digest))
        return folder

    def enable(self, plugin: Plugin) -> None:
        """Use a plugin as it lies there now."""
        digest = plugin.digest or plugin.added.digest
        self._keep(plugin.name, replace(plugin.added, is_enabled=True, digest=digest))

    def disable(self, plugin: Plugin) -> None:
        """Leave a plugin where it is, unused."""
        self._keep(plugin.name, replace(plugin.added, is_enabled=False))

    def remove(self, plugin: Plugin) -> None:
        """Delete a plugin."""
        self._keep(plugin.name, None)
        shutil.rmtree(plugin.folder, ignore_errors=True)

    def _keep(self, name: str, added: Added | None) -> None:
        plugins = {each: value for each, value in self._read().plugins.items() if each != name}
        if added is not None:
            plugins[name] = added
        data = msgspec.json.format(msgspec.json.encode(_Record(plugins=plugins)), indent=2)
        private_file.replace(self._file, data)

    def _read(self) -> _Record:
        data = private_file.read(self._file)
        if data is None:
            return _Record()
        try:
            return from_json(data, _Record)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self._file} cannot be read: {error}") from error
