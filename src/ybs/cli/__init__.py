"""The command line: arguments in, one frontend or subcommand opened, an exit code out.

Everything heavy is imported after the arguments are known; `ybs --version` imports nothing at all.
"""

import atexit
import gc
import sys
from collections.abc import Sequence
from errno import EBADF, EDQUOT, EFBIG, EIO, ENOSPC, EPIPE
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from ybs.session.options import Options

#: After how many new objects garbage is looked for. Imports make many and no garbage, so Python's own 700 only slows a start.
#: A start comes to 50,000 of them, a session with edits and commands to 70,000; a chat to 100,000.
GARBAGE = (150_000, 10, 10)
VERSION = ["--version"]
#: What Python tells an audit hook of the start of a program.
STARTS = frozenset(("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn", "os.system"))
#: What the system says when a stream takes no more.
UNWRITABLE = (EBADF, EDQUOT, EFBIG, EIO, ENOSPC, EPIPE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    open_missing_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:  # not where a test calls
        prepare_process(words)
    code = 0
    try:
        code = answer(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # the disk is full, or nobody reads any more: `ybs ... | head`
        if error.filename is not None or error.errno not in UNWRITABLE:
            raise
        mute(1)
        if code:  # known already, such as that of a terminal that is gone: this is the rest for it
            return code
        if not isinstance(error, BrokenPipeError):
            complain(f"cannot write: {error.strerror}")
        return 1
    if argv is None:
        leave(code)
    return code


def prepare_process(words: Sequence[str]) -> None:
    """Set what holds for the process as a whole: how a crash looks, when garbage is looked for, how modules are found."""
    sys.excepthook = show_crash
    gc.set_threshold(*GARBAGE)
    atexit.register(gc.freeze)  # else Python's own end would look through every object for garbage
    if words != VERSION:  # nothing is imported for that
        from ybs.config.editables import leave_out
        from ybs.finder import install, load_msgspec

        leave_out()
        install()
        load_msgspec()


def judge_starts() -> None:
    """Judge from now on what libraries start, if this is ybs's own process. Each import tells a hook of five events."""
    from ybs.finder import is_installed

    if is_installed():
        sys.addaudithook(judge_start)


def judge_start(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise PermissionError where a library would start a program of a folder that is worked in: an audit hook."""
    if event in STARTS:
        from ybs.security.launcher import is_launching, judge_start

        if is_launching():  # what ybs starts itself
            return
        from ybs.frontends.host import this_host

        this_host()  # notes the folder that the process stands in
        judge_start(event, arguments)


def leave(code: int) -> None:
    """End the process at once, unless a thread is still at work.

    Python's own end takes every object and module apart, which takes 6 ms and serves nobody: what was to be written is on
    the disk by now, and what asked to be called at the end is called here too.
    """
    import os

    threading = sys.modules.get("threading")  # `--version` loads none, so there is no other thread
    if threading and any(
        not each.daemon for each in threading.enumerate() if each is not threading.main_thread()
    ):
        return
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] - there is no public name for it
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python's own end reports it
        return
    os._exit(code)


def answer(words: Sequence[str]) -> int:
    """Say the version, or do what the words ask for; leave with a code, not an exception."""
    if words == VERSION:  # nothing is imported for this
        from ybs import __version__

        sys.stdout.write(f"ybs {__version__}\n")
        return 0
    try:
        return run(words)
    except SystemExit as leaving:  # the parser: --help, or one line about bad usage
        if isinstance(leaving.code, str):
            complain(leaving.code)
            return 2
        return leaving.code or 0


def show_crash(
    kind: type[BaseException], error: BaseException, trace: "TracebackType | None"
) -> None:
    """Show an error that nothing caught, in words that act on no terminal."""
    from ybs.security.gate import put_crash  # not loaded where nothing crashes

    put_crash(kind, error, trace)


def run(words: Sequence[str]) -> int:
    """Read the arguments and open what they ask for."""
    from ybs.cli.parser import parse
    from ybs.core.errors import YbsError

    try:
        arguments = parse(words)
        if folder := getattr(arguments, "work_in", None):
            change_to(folder)
        frontend = frontend_of(arguments)
        if frontend is not start_frontend:
            judge_starts()
        return frontend(arguments)
    except YbsError as error:
        from ybs.frontends.headless.advice import told
        from ybs.frontends.headless.run import code_of

        complain(told(error))
        return code_of(error)


def frontend_of(arguments: "Namespace") -> "Callable[[Namespace], int]":
    """Return what opens a frontend for the arguments."""
    own = {"setup": set_up, "acp": serve_editor, "completion": complete}
    if arguments.subcommand in own:
        return own[arguments.subcommand]
    if arguments.subcommand in ("serve", "attach") or arguments.background:
        return use_server
    return run_named if arguments.subcommand else start_frontend


def complete(arguments: "Namespace") -> int:
    """Print what completes ybs's arguments in a shell."""
    from ybs.cli.completion import completion
    from ybs.security.gate import put

    put(completion(arguments.action).rstrip("\n"), sys.stdout)
    return 0


def set_up(arguments: "Namespace") -> int:
    """Ask for the model, or show what the settings of editors need."""
    from ybs.frontends.host import this_host

    if getattr(arguments, "what", "") == "editor":
        from ybs.frontends.subcommands.editors import set_up_editors

        return set_up_editors(this_host(), arguments.editors, writes=arguments.write)
    from ybs.frontends.terminal.start.setup import set_up

    return 0 if set_up(this_host(), using=getattr(arguments, "using", "")) else 1


def serve_editor(arguments: "Namespace") -> int:
    """Serve an editor, or set up the model for one."""
    if arguments.action == "setup":
        return set_up(arguments)
    from ybs.frontends.acp.command import serve

    return serve(session_options(arguments), starts_server=arguments.serve)


def run_named(arguments: "Namespace") -> int:
    """Run the subcommand that the arguments name."""
    if arguments.subcommand == "tool":
        return call_tool(arguments)
    options = session_options(arguments)
    if arguments.subcommand == "mcp" and arguments.action == "serve":
        from ybs.frontends.mcp_server.command import serve

        return serve(options, arguments.tools)
    if arguments.subcommand in ("web", "gateway"):
        return serve_people(arguments, options)
    from ybs.frontends.subcommands.commands import run_subcommand

    return run_subcommand(arguments, options)


def serve_people(arguments: "Namespace", options: "Options") -> int:
    """Serve browsers or chats."""
    if arguments.subcommand == "web":
        from ybs.frontends.web.command import web

        return web(arguments, options)
    try:
        from ybs.frontends.gateway.command import gateway
    except ModuleNotFoundError as error:  # SQLAlchemy
        complain(f"{error.name} is missing. Chats need the extra: pip install 'ybs[gateway]'")
        return 1
    return gateway(arguments, options)


def use_server(arguments: "Namespace") -> int:
    """Be the server of sessions, or have it show or begin one."""
    if arguments.subcommand == "serve":
        from ybs.frontends.host import this_host
        from ybs.frontends.serve.command import serve

        return serve(arguments, this_host())
    if arguments.background:
        from ybs.frontends.serve.background import background

        return background(session_options(arguments), arguments.prompt)
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        complain("`ybs attach` needs a terminal; programs speak to the socket of `ybs serve`")
        return 2
    from ybs.frontends.serve.background import attach

    return attach(session_options(arguments), arguments.name)


def start_frontend(arguments: "Namespace") -> int:
    """Open the terminal, or run once where there is none."""
    options = session_options(arguments)
    judge_starts()  # its modules start nothing, and a person waits for them
    prompt = arguments.prompt or ""
    is_chat = not arguments.print and is_terminal(sys.stdin) and is_terminal(sys.stdout)
    is_own = False
    if is_command := not arguments.is_sent and is_chat_line(prompt):
        from ybs.frontends.headless.command import is_own_command, refusal_of, run_command_once

        is_own = is_own_command(options, prompt)
        if not is_own and (refusal := refusal_of(prompt)):
            complain(refusal)
            return 2
        if not is_chat and not is_own:
            return run_command_once(options, prompt, output_format=arguments.output_format)
    if not is_chat:
        if arguments.resume == "":
            complain(
                "without a terminal, --resume needs a session: --resume ID, or --continue for the newest."
            )
            return 2
        from ybs.frontends.headless.run import run_once

        return run_once(
            options,
            prompt=arguments.prompt,
            output_format=arguments.output_format,
            is_verbose=arguments.verbose or arguments.dry_run,  # the calls are the result
            is_command=is_own,
        )
    if options.output_schema is not None:
        complain("--output-schema works only with --print")
        return 2
    from ybs.frontends.terminal.app import chat

    return chat(
        options,
        prompt="" if is_command else prompt,
        command="/resume" if arguments.resume == "" else prompt if is_command else "",
        is_verbose=arguments.verbose,
    )


def is_chat_line(prompt: str) -> bool:
    """Return whether the prompt would be a command in a chat and not a message."""
    if not prompt.lstrip().startswith(("/", "!")):
        return False
    from ybs.session.injection import is_command  # a prompt needs none

    return prompt.lstrip().startswith("!") or is_command(prompt)


def call_tool(arguments: "Namespace") -> int:
    """Run one tool; the person is asked where there is a terminal to ask on."""
    from ybs.frontends.subcommands.tools import call_tool as call

    confirm = None
    if not arguments.yes and is_terminal(sys.stdin) and is_terminal(sys.stderr):
        from ybs.frontends.terminal.questions.late import ask as confirm

    options = session_options(arguments)
    return call(options, arguments.name, arguments.json, is_yes=arguments.yes, confirm=confirm)


def is_terminal(stream: Any) -> bool:
    """Return whether a standard stream is there, open, and a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def open_missing_streams() -> None:
    """Put /dev/null in the place of standard streams that were closed before ybs began.

    In the order of their numbers, so that no file or connection gets the number of a closed one.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            from os import O_RDWR, devnull, fdopen
            from os import open as open_number

            setattr(sys, name, fdopen(open_number(devnull, O_RDWR), mode, encoding="utf-8"))


def complain(message: str) -> None:
    """Write a line to standard error; a full or closed one is nobody's concern."""
    from ybs.security.gate import put  # `--version` needs none of it

    try:
        put(f"ybs: {message}", sys.stderr)
    except (OSError, ValueError):
        mute(2)


def mute(stream: int) -> None:
    """Point a standard stream at nothing, so that Python's own flush at the end does not complain."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def keep_memory_private() -> None:
    """Have no crash of this process write its memory down: an incognito session is about to begin."""
    from ybs.security.incognito import leave_no_dump

    leave_no_dump()


def session_options(arguments: "Namespace") -> "Options":
    """Make the session's options of the arguments."""
    from ybs.frontends.host import this_host
    from ybs.session.options import Options

    settings = {
        "provider": arguments.provider,
        "model": arguments.model,
        "endpoint": arguments.endpoint,
        "mode": arguments.mode,
        "max_turns": arguments.max_turns,
        "max_cost": arguments.max_cost,
        "timeout": arguments.timeout,
        "incognito": arguments.incognito or None,
        "plain": arguments.plain or None,
    }
    rest: dict[str, Any] = {
        "host": this_host(),
        "config_file": arguments.config,
        "profile": arguments.profile,
        "allow": tuple(arguments.allow),
        "deny": tuple(arguments.deny),
        "add_dirs": tuple(arguments.add_dir),
        "dry_run": arguments.dry_run,
        "trust": arguments.trust,
        "sandbox": not arguments.no_sandbox,
        "system_prompt_file": arguments.system_prompt_file,
        "output_schema": read_schema(arguments.output_schema),
        "resume": "" if arguments.newest else arguments.resume or None,
        "fork": arguments.fork,
        "before_incognito": keep_memory_private,
    }
    return Options.of(here(), settings | rest)


def read_schema(path: "Path | None") -> Any:
    """Read the file of --output-schema. Raises BadOption where it cannot be read, is not JSON or not a usable schema."""
    if path is None:
        return None
    from json import loads

    from ybs.core.errors import ConfigError
    from ybs.guards.json_schema import JsonSchema
    from ybs.session.options import BadOption

    try:
        return JsonSchema(loads(path.read_text("utf-8"))).root
    except OSError as error:
        raise BadOption(f"--output-schema {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadOption(f"--output-schema {path} is not JSON: {error}") from error
    except ConfigError as error:
        raise BadOption(f"--output-schema {path}: {error}") from error


def change_to(folder: str) -> None:
    """Work in another folder than the one that ybs was started in. Raises YbsError."""
    import os

    from ybs.core.errors import YbsError

    try:
        os.chdir(folder)
    except OSError as error:
        raise YbsError(f"The folder {folder} cannot be used ({error.strerror}).") from error


def here() -> "Path":
    """Return the folder that ybs was started in. Raises YbsError where it is gone."""
    from pathlib import Path

    from ybs.core.errors import YbsError

    try:
        return Path.cwd()
    except OSError as error:
        raise YbsError(
            f"The folder that ybs was started in cannot be used ({error.strerror}): it was deleted, moved or closed to "
            "you. Change to a folder that exists, and start ybs there."
        ) from error
