"""`ybs models`: the models on this machine and the server that runs them."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from msgspec import to_builtins

from ybs.commands.advice import INSTALL_STARTER
from ybs.commands.download import pulls, unchecked
from ybs.commands.figures import amount
from ybs.commands.model_choices import whose
from ybs.config.layers import Loaded
from ybs.config.settings_file import write_settings
from ybs.core.errors import ConfigError
from ybs.frontends.headless.output import tell, write, write_json
from ybs.frontends.layout import in_columns
from ybs.frontends.subcommands.doctor import lack_of
from ybs.providers.catalog import CATALOG_DATE, FREE, Price
from ybs.providers.local import STARTER_NAME, hardware
from ybs.providers.local.hub import find_source, is_there
from ybs.providers.local.hub import install as install_source
from ybs.providers.local.models import (
    STARTER_BYTES,
    ModelFile,
    files_of,
    find_model,
    list_models,
    models_folder,
    remove_starter,
    starter_installed,
    starter_path,
)
from ybs.providers.local.program import this_machine
from ybs.providers.reachable import Reached, ReachedModel, find_reachable
from ybs.providers.registry import chosen_provider, client_of, route_of
from ybs.providers.wire.ollama import PATIENCE, pull
from ybs.security.gate import put, put_over
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options

T = TypeVar("T")
#: A model that Ollama passes on has a size too, of a few bytes.
_LEAST_BYTES = 50_000_000
_ABILITIES = {"sees_images": "sees pictures", "thinks": "thinks", "calls_tools": "calls tools"}


class _Unwaited(ThreadPoolExecutor):
    """Threads that nobody waits for at the end: looking up a name may take long, and cannot be stopped."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end by themselves."""
        del wait, cancel_futures
        super().shutdown(wait=False, cancel_futures=True)


def run_leaving_threads(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return what it returns, without waiting for threads that it gave up on."""

    async def run() -> T:
        asyncio.get_running_loop().set_default_executor(_Unwaited(thread_name_prefix="models"))
        return await work

    return asyncio.run(run())


def reached_data(found: Reached) -> dict[str, Any]:
    """Return a provider and its models as plain data; what is not known is null, a price "unknown"."""
    models = [
        {
            "name": each.name,
            **to_builtins(each.facts),
            "price": "unknown" if each.facts.price is None else _price_data(each.facts.price),
            "size_bytes": each.size_bytes,
        }
        for each in found.models
    ]
    return {
        "provider": found.reach.provider,
        "endpoint": found.reach.endpoint,
        "state": found.reach.state,
        "owner": found.reach.owner,
        "reason": _reason(found),
        "models": models,
    }


def reached_lines(found: Sequence[Reached]) -> Iterator[str]:
    """Write providers that answer down with their models, then those that do not with the reason."""
    for each in found:
        if each.models:
            place = f" at {each.reach.endpoint}" if each.reach.endpoint else ""
            owner = f" ({whose(each.reach.owner)})" if each.reach.owner else ""
            yield f"{each.reach.provider}{place}{owner}:"
            yield from (f"  {line}" for line in in_columns([_cells(one) for one in each.models]))
    for each in found:
        if not each.models:
            yield f"{each.reach.provider}: {_reason(each)}"


def _reason(found: Reached) -> str:
    """Return why a provider has no models here; empty where it has some."""
    if found.models:
        return ""
    if why := found.why or found.reach.complaint:
        return why
    return "it lists no models" if found.reach.is_ready else lack_of(found.reach)[0]


def _cells(model: ReachedModel) -> tuple[str, ...]:
    facts, size = model.facts, model.size_bytes or 0
    return (
        model.name,
        f"{amount(facts.window)} window" if facts.window else "window unknown",
        _price_words(facts.price),
        ", ".join(words for name, words in _ABILITIES.items() if getattr(facts, name)),
        f"{size / 1e9:.1f} GB" if size >= _LEAST_BYTES else "",
    )


def _price_data(price: Price) -> dict[str, Any]:
    """Return a price as plain data, with what long requests cost where that is another price."""
    data = to_builtins(price)
    return data if price.long_after else {k: v for k, v in data.items() if "long" not in k}


def _price_words(price: Price | None) -> str:
    """Return what a million tokens cost."""
    if price is None:
        return "price unknown"
    return "free" if price == FREE else f"${price.input:g} in, ${price.output:g} out"


#: What an action found or did: data for a program, lines for a person, and the exit code.
Report: TypeAlias = tuple[Any, list[str], int]
#: Without a terminal, progress is told each time another this many percent are there.
STEP_PERCENT = 10


def models(arguments: "Namespace", options: "Options") -> int:
    """Do what the action says, print it, and return the exit code. Raises YbsError."""
    loaded, action, name = load_settings(options), arguments.action, arguments.model_name or ""
    if action == "list":
        work = show_list(loaded, everywhere=arguments.all)
    else:
        work = ACTIONS[action](name, loaded)
    data, lines, code = run_leaving_threads(work)
    if arguments.format == "json":
        write_json(data)
    else:
        for line in lines:
            write(line)
    return code


async def show_list(loaded: Loaded, *, everywhere: bool) -> Report:
    """List the models that can be reached now, then model files, and what would be the best for this machine."""
    host = loaded.host
    found, machine = await asyncio.gather(
        find_reachable(host, loaded.config, everywhere=everywhere),
        asyncio.to_thread(this_machine, host, loaded.config.local.server),
    )
    others = [file for file in list_models(host) if file.path != starter_path(host)]
    starter = ModelFile(name=STARTER_NAME, path=starter_path(host), size_bytes=STARTER_BYTES)
    is_there = starter_installed(host)
    files = [
        {
            "name": f.name,
            "path": str(f.path),
            "size_bytes": f.size_bytes,
            "is_installed": is_there or f is not starter,
        }
        for f in (starter, *others)
    ]
    lines = [f"{f.name}  {f.size_bytes / 1e9:.1f} GB  {f.path}" for f in (starter, *others)]
    if not is_there:
        lines[0] += f"  (not installed; `{INSTALL_STARTER}` fetches it)"
    lines.append(f"Other GGUF files go into {models_folder(host)}")
    data = {
        "catalog_date": CATALOG_DATE,
        "providers": [reached_data(each) for each in found],
        "files": files,
    }
    more = [] if everywhere else ["`ybs models --all` asks providers elsewhere, too."]
    return data, [*reached_lines(found), *more, *lines, *_advice(loaded, machine)], 0


def _advice(loaded: Loaded, machine: hardware.Machine) -> list[str]:
    """Say what this machine can run best."""
    lines = [f"This machine: {machine.words}"]
    with suppress(ConfigError):  # nothing fits
        best = find_source(loaded.host, "", loaded.config.local.hub, machine)
        fetch = "" if best.path.exists() else "; `ybs models download` fetches it"
        lines.append(f"Best for it: {Path(best.file).stem} ({best.reason}){fetch}")
    return lines


async def fetch(name: str, loaded: Loaded) -> Report:
    """Download a model, into Ollama where that is the provider and the name is not that of a file."""
    if name in ("starter", STARTER_NAME):
        return await _install_starter(loaded)
    host, config, progress = loaded.host, loaded.config, DownloadProgress()
    try:
        if pulls(host, config, name):
            server = chosen_provider(host, config, config.llm.provider)
            await pull(client_of(host, server, config, name, patience=PATIENCE), name, progress)
            return {"name": name, "server": "ollama"}, [f"Ollama has {name} now."], 0
        machine = await asyncio.to_thread(this_machine, host, config.local.server)
        source = find_source(host, name, config.local.hub, machine)
        if await is_there(source):
            data = {"name": source.name, "path": str(source.path), "was_there": True}
            return data, [f"{source.name} was there already: {source.path}"], 0
        if source.reason:
            tell(f"{source.file}: {source.reason}")
        found = await install_source(source, progress, route_of(host, config))
    finally:
        progress.end()
    lines = [f"{source.name} is installed: {found.path}"]
    if not found.is_checked:
        lines.append(unchecked(found.sha256))
    lines.append(f"`ybs models use {source.name}` chooses it.")
    data = {"name": source.name, "path": str(found.path), "was_there": False}
    return data | {"sha256": found.sha256, "is_checked": found.is_checked}, lines, 0


async def use(name: str, loaded: Loaded) -> Report:
    """Choose a local model in the person's own settings."""
    find_model(loaded.host, name, STARTER_NAME)
    settings = {"llm.provider": "llamacpp", "llm.model": name, "llm.endpoint": None}
    path = write_settings(settings, loaded.host.user_config_file)
    return {"name": name, "settings": str(path)}, [f"ybs uses {name} from now on ({path})."], 0


async def _install_starter(loaded: Loaded) -> Report:
    """Fetch the starter model, with progress on standard error."""
    from ybs.providers.local.fetch import install_starter

    host = loaded.host
    was_there = starter_installed(host)
    progress = DownloadProgress()
    try:
        path = await install_starter(host, progress, route_of(host, loaded.config))
    finally:
        progress.end()
    said = "was there already" if was_there else "is installed"
    return {"path": str(path), "was_there": was_there}, [f"{STARTER_NAME} {said}: {path}"], 0


async def remove(name: str, loaded: Loaded) -> Report:
    """Delete a model, the starter where none is named; a server that runs it is stopped first."""
    from ybs.providers.local.server import find_running
    from ybs.providers.local.server import stop as stop_server

    host, name = loaded.host, name or STARTER_NAME
    is_starter = name == STARTER_NAME
    path = starter_path(host) if is_starter else models_folder(host) / f"{name}.gguf"
    here = files_of(host, path.stem if is_starter else name)
    if not is_starter and not here:
        raise ConfigError(f"There is no model {name!r} in {models_folder(host)}.")
    server = await find_running(host)
    if server is not None and server.serves(path):
        await stop_server(loaded.host)
    was_there = path in here
    if is_starter:
        await remove_starter(host)
    else:
        for each in here:
            await asyncio.to_thread(each.unlink)
    part = "its incomplete download was removed" if here else "was not installed"
    said = "removed" if was_there else part
    return {"was_there": was_there}, [f"{name}: {said}"], 0


async def status(_name: str, loaded: Loaded) -> Report:
    """Say whether the server runs."""
    from ybs.providers.local.server import find_running, is_healthy

    found = await find_running(loaded.host)
    if found is None:
        return (
            {"is_running": False},
            ["The local server is not running; it starts with the first request."],
            0,
        )
    is_ready = await asyncio.to_thread(is_healthy, found)
    data: Mapping[str, Any] = {
        "is_running": True,
        "is_ready": is_ready,
        "pid": found.pid,
        "endpoint": found.socket,
        "model": found.model,
        "window": found.window,
    }
    state = "ready" if is_ready else "starting, or not answering"
    line = f"{state}: {found.model} at {found.socket}, window {found.window:,}, process {found.pid}"
    return data, [line], 0


async def stop(_name: str, loaded: Loaded) -> Report:
    """End the server."""
    from ybs.providers.local.server import stop as stop_server

    was_running = await stop_server(loaded.host)
    said = "The local server was stopped." if was_running else "No local server was running."
    return {"was_running": was_running}, [said], 0


class DownloadProgress:
    """Tells how far a download is: one line that counts up, or a line now and then without a terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last = ""

    def __call__(self, done: int, total: int, what: str) -> None:
        """Take a step."""
        percent = 100 * done // max(1, total)
        if not self._is_terminal:
            percent -= percent % STEP_PERCENT
        text = f"{what}: {percent}% of {total / 1e9:.1f} GB" if what == "fetching" else what
        if text == self._last:
            return
        self._last = text
        if self._is_terminal:
            put_over(text, sys.stderr)
        else:
            put(text, sys.stderr)

    def end(self) -> None:
        """Go to a new line, if one was begun."""
        if self._is_terminal and self._last:
            put("", sys.stderr)


ACTIONS: Final[dict[str, Callable[[str, Loaded], Coroutine[Any, Any, Report]]]] = {
    "download": fetch,
    "use": use,
    "remove": remove,
    "status": status,
    "stop": stop,
}
