"""`ybs tools list` and `ybs tool call`: the tools without a model."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ybs.agent.environment import ToolEnvironment
from ybs.agent.prompt_context import PromptContext
from ybs.agent.toolbox import ToolSet, make_toolbox, own_tools, programs_of
from ybs.config import private_file
from ybs.config.host import Host
from ybs.config.installed import installed
from ybs.core.errors import ToolError
from ybs.core.events import Event, Noticed
from ybs.core.messages import ToolCall, ToolResult
from ybs.core.ports import Answer, Confirm, Question, Tool, Toolbox
from ybs.frontends.headless.advice import advised, refuse
from ybs.frontends.headless.output import (
    UsageError,
    read_piped,
    tell,
    warn,
    write,
    write_json,
    write_table,
)
from ybs.frontends.headless.run import INTERRUPTED, SIGNALS
from ybs.session.plugins import with_plugins
from ybs.session.settings import environment_of, ready_settings
from ybs.tools.external.catalogue import DESCRIBE_SECONDS
from ybs.tools.registry import NAMES, builtin_tools, is_enabled

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from ybs.session.options import Options
    from ybs.tools.mcp.servers import McpTool

    #: Asks the person about a call, which runs with what the text says around it.
    Ask = Callable[[Question, str], Awaitable[Answer]]

WEB = ("web_search", "web_fetch")
_FOLDER = Path(__file__).parents[2] / "ready_tools"


def names() -> list[str]:
    """Return the names of the tools that come with ybs."""
    return sorted(file.stem for file in _FOLDER.glob("[a-z]*.py"))


def install(host: Host, name: str | None) -> int:
    """Copy a tool, or without a name list them. 1: another file of that name is there; 2: there is no such tool."""
    if name is None:
        for each in names():
            first = (_FOLDER / f"{each}.py").read_text("utf-8").partition("\n")[0]
            write(f"{each}: " + first.strip('"'))
        return 0
    if name == "web":  # both that the web takes
        return max(install(host, each) for each in WEB)
    wanted = name.replace("-", "_")
    if wanted not in names():
        tell(f"ybs: there is no tool {name!r} to install. There are: {', '.join(names())}.")
        return 2
    text, file = (
        (_FOLDER / f"{wanted}.py").read_text("utf-8"),
        host.config_folder / f"tools/{wanted}.py",
    )
    if file.exists() and file.read_text("utf-8", errors="replace") != text:
        tell(f"ybs: {file} is there already, and is not overwritten. Remove it first.")
        return 1
    private_file.replace(file.parent.resolve() / file.name, text.encode())
    write(f"Installed {file}. Sessions offer it from their start on, and after /reload-tools.")
    return 0


_CALL_ID = "call"


class _Listed(Struct, frozen=True):
    """A tool as it is listed: `source` is "built-in", "installed", or the program that it is."""

    tool: Tool
    source: str
    is_on: bool = True

    @property
    def data(self) -> dict[str, Any]:
        """The tool as JSON."""
        return {
            "name": self.tool.name,
            "effect": self.tool.effect,
            "source": self.source,
            "enabled": self.is_on,
            "description": self.tool.description,
            "parameters": self.tool.parameters,
        }

    @property
    def cells(self) -> tuple[str, ...]:
        """The tool as a row of a table."""
        first = self.tool.description.partition("\n")[0].partition(". ")[0].removesuffix(".")
        return self.tool.name, self.tool.effect, "on" if self.is_on else "off", first


def tools(arguments: "Namespace", options: "Options") -> int:
    """Do what the arguments ask for and return the exit code."""
    if arguments.action == "install":
        return install(options.host, arguments.name)
    run = check_tools if arguments.action == "check" else list_tools
    return run(options, is_json=arguments.format == "json")


def list_tools(options: "Options", *, is_json: bool) -> int:
    """Print the tools, those that are switched off too, and those that programs and packages beside ybs bring."""
    options = with_plugins(options, installed())
    loaded = ready_settings(options)
    environment = environment_of(options, loaded)
    listed = [*_own(environment), *(_Listed(tool, "installed") for tool in options.tools)]
    broken: list[str] = []
    if environment.has_external_tools():
        catalogue = environment.external_tools
        asyncio.run(_settled(environment, catalogue.load(DESCRIBE_SECONDS)))
        listed += [_Listed(tool, tool.program.shown) for tool in catalogue.usable]
        broken = [f"{each.shown}: {each.why}" for each in catalogue.problems if each.is_expected]
    if environment.has_mcp():
        listed += [_Listed(tool, tool.source) for tool in mcp_tools(environment)]
    if is_json:
        write_json([each.data for each in listed])
    else:
        write_table([each.cells for each in listed])
    warn((*loaded.warnings, *options.warnings, *broken))
    return 0


def _own(environment: ToolEnvironment) -> "Iterator[_Listed]":
    config = environment.config
    builtin = {name: replace(tool, enabled=True) for name, tool in config.tools.builtin.items()}
    all_on = replace(config, tools=replace(config.tools, builtin=builtin))
    others = own_tools(environment, PromptContext(environment))
    for tool in (*builtin_tools(all_on, environment.workspace), *others):
        yield _Listed(tool, "built-in", is_enabled(config, tool))


def check_tools(options: "Options", *, is_json: bool) -> int:
    """Ask every external tool anew what it does; print what can be used and what cannot. 1: something cannot."""
    loaded = ready_settings(options)
    environment = environment_of(options, loaded)
    catalogue = environment.external_tools
    asyncio.run(_settled(environment, catalogue.reload()))
    tools, problems = catalogue.usable, catalogue.problems
    if is_json:
        found = [
            {"name": tool.name, "program": tool.program.shown, "needs": tool.definition.needs}
            for tool in tools
        ]
        wrong = [{"program": each.shown, "problem": each.why} for each in problems]
        write_json({"tools": found, "problems": wrong})
    else:
        reads = "only reads the project"
        rows = [
            (each.name, each.program.shown, each.definition.needs.words or reads) for each in tools
        ]
        write_table(
            [
                ("ok", name, shown, f"needs {needs}" if needs != reads else needs)
                for name, shown, needs in rows
            ]
        )
        for each in problems:
            tell(f"{each.shown}: {each.why}")
        if not rows and not problems:
            tell(f"No external tools were found in {', '.join(loaded.config.tools.search_paths)}.")
    warn(loaded.warnings)
    return int(any(each.is_expected for each in problems))


async def _settled(environment: ToolEnvironment, work: "Awaitable[None]") -> None:
    """Wait for what runs programs, and end what they need."""
    try:
        await work
    finally:
        await environment.external_tools.aclose()
        await environment.aclose()


async def _foreign(environment: ToolEnvironment, options: "Options", name: str) -> "Sequence[Tool]":
    """Return the tools that are not built in, the programs and those of MCP servers among them where a name may be of one."""
    if name.startswith("mcp__") and environment.has_mcp():
        return (*options.tools, *await _offered(environment))
    return options.tools if name in NAMES else (*options.tools, *await programs_of(environment))


async def _offered(environment: ToolEnvironment) -> "Sequence[McpTool]":
    """Return the tools of the MCP servers; those that nobody has seen yet are started to say what they offer."""
    servers = environment.mcp
    await servers.known()
    warn([advised(each.text, each.remedies, separator=" ") for each in servers.news()])
    return servers.tools()


def mcp_tools(environment: ToolEnvironment) -> "Sequence[McpTool]":
    """Return the tools of the MCP servers, which are ended."""

    async def look() -> "Sequence[McpTool]":
        try:
            return await _offered(environment)
        finally:
            await environment.mcp.aclose()

    return asyncio.run(look())


def call_tool(
    options: "Options", name: str, json: str | None, *, is_yes: bool, confirm: "Ask | None"
) -> int:
    """Run one tool, print its result as JSON and return the exit code. `confirm` asks the person (None: nobody).

    1: it failed, 2: the call makes no sense, 5: it was refused, 130 and the like: it was interrupted.
    """
    try:
        call = ToolCall(id=_CALL_ID, name=name, arguments=arguments_of(json))
        confirming = agree if is_yes else refuse_call
        if confirm is not None and not is_yes:
            confirming = _asking(confirm, lambda: environment.sandbox.word)
        options = with_plugins(options, installed())
        environment = environment_of(options, ready_settings(options), confirming, _tell_event)
    except (UsageError, ToolError) as error:
        return _senseless(name, error)
    return asyncio.run(_called(environment, options, call))


async def _called(environment: ToolEnvironment, options: "Options", call: ToolCall) -> int:
    """Find the tool, and run the call in the same loop: servers and programs live in the loop that started them."""
    context = PromptContext(environment)
    try:
        foreign = await _foreign(environment, options, call.name)
        toolbox = make_toolbox(
            environment, ToolSet(own=tuple(own_tools(environment, context)), foreign=foreign)
        )
        toolbox.check(call)
    except BaseException as error:
        await context.aclose()
        await environment.aclose()
        if isinstance(error, UsageError | ToolError):
            return _senseless(call.name, error)
        raise
    warn(environment.loaded.warnings)
    guarded = environment.secrets.guarded(toolbox)  # who asked for the call may be a model
    return await SingleCall(environment, context, guarded).go(call)


def _senseless(name: str, error: Exception) -> int:
    tell(f"ybs: {error}")
    write_json({"tool": name, "success": False, "error": str(error)})
    return 2


def arguments_of(json: str | None) -> Raw:
    """Return the arguments given, or those piped in, or none. Raises UsageError for what is not a JSON object."""
    text = read_piped().strip() or "{}" if json is None or json == "-" else json
    try:
        value: Any = msgspec.json.decode(text)
        if isinstance(value, dict):
            return Raw(text.encode())
        problem = "not an object"
    except (ValueError, RecursionError) as error:
        problem = str(error)
    raise UsageError(
        f'the arguments are not one JSON object ({problem}); such as {{"path": "README.md"}}'
    )


async def agree(question: Question) -> Answer:
    """Answer yes: the person said so for this one call."""
    del question
    return Answer(is_allowed=True)


async def refuse_call(question: Question) -> Answer:
    """Refuse, since nobody can be asked, and say how the person could allow it."""
    answer = await refuse(question)
    return replace(answer, reason=f"{answer.reason}, or add --yes")


def _asking(ask: "Ask", sandbox: "Callable[[], str]") -> Confirm:
    async def confirm(question: Question) -> Answer:
        is_command = question.effect == "execute"  # finding a sandbox takes its time
        return await ask(question, sandbox() if is_command else "")

    return confirm


class SingleCall:
    """One call, with the signals that may end it."""

    def __init__(
        self, environment: ToolEnvironment, context: PromptContext, toolbox: Toolbox
    ) -> None:
        self._environment, self._context, self._toolbox = environment, context, toolbox
        self._signal_code = 0

    async def go(self, call: ToolCall) -> int:
        """Run the call, print the result, and return the exit code."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self._stop, code, task)
        try:
            result = await self._toolbox.run(call, _tell_event)
        except asyncio.CancelledError:
            tell("ybs: stopped")
            return self._signal_code or INTERRUPTED
        finally:
            left = self._environment.workspace.shells.running_jobs
            await self._context.aclose()
            await self._environment.aclose()
        if left:
            tell(f"ybs: {left[0]} was stopped: a background command ends with its session")
        if self._signal_code:  # what the tool left is not the result that was asked for
            tell("ybs: stopped")
            return self._signal_code
        write_json(shown(result))
        if result.is_refused:
            tell(f"ybs: {advised(result.output, result.remedies, separator=' ')}")
            return 5
        return 1 if result.is_error else 0

    def _stop(self, code: int, task: asyncio.Task[int] | None) -> None:
        self._signal_code = code
        if task is not None:
            task.cancel()


def shown(result: ToolResult) -> dict[str, Any]:
    """Return the result as it is printed: `result` is the specification's object, `output` what a model reads."""
    problem = result.output if result.is_refused else result.summary
    return {
        "tool": result.name,
        "success": not result.is_error,
        "error": problem if result.is_error else None,
        "refused": result.is_refused,
        "output": result.output,
        "result": result.display,
        "images": [image.media_type for image in result.images],
        "duration_seconds": round(result.duration_seconds, 3),
    }


def _tell_event(event: Event) -> None:
    if isinstance(event, Noticed):
        tell(event.text)
