"""A program that serves as a tool: what starts it, and one run of it in the sandbox."""

import asyncio
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.host import Host
from ybs.config.review import ProjectFile
from ybs.config.schema import ToolNeeds
from ybs.config.variables import project_variables
from ybs.core.errors import ConfigError, ToolError
from ybs.security.own_programs import Start, with_git_setting
from ybs.security.paths.opening import read_beginning
from ybs.security.paths.steps import check_ways
from ybs.security.sandbox.launch import Access, Launch
from ybs.tools.shell.output import CommandOutput
from ybs.tools.shell.process import Shell, ShellCommand, run_command
from ybs.tools.workspace import Workspace

#: How much of what a program writes is kept; more is cut in the middle, and is not JSON then.
MOST_CHARS = 250_000
_MOST_IN_ARGUMENT = 100_000  # the system takes 128 KiB
_RUNNER = Path(__file__).with_name("python_file.py")


class Program(Struct, frozen=True):
    """A program by its real path, and how the person knows it. `is_python`: it is Python code for ybs's own interpreter."""

    path: Path
    shown: str
    is_python: bool = False
    #: Its path from the project's folder, for one of the project: it is run only as long as it is what was trusted.
    in_project: str = ""
    #: For such a one, what it is run with, by the path from the project's folder: itself, and what it may load from beside it.
    files: Mapping[str, ProjectFile] = {}

    @property
    def is_projects(self) -> bool:
        """Whether it is not the person's own."""
        return bool(self.in_project)


class ProgramRun(Struct, frozen=True, kw_only=True):
    """One run: `words` stand behind the program, `given` is its input, and it gets what it `needs` and nothing else."""

    program: Program
    words: Sequence[str] = ()
    given: bytes = b""
    needs: ToolNeeds = ToolNeeds()
    seconds: float
    #: Where it starts (`security/own_programs.py`).
    cwd: str = ""


class ProgramResult(Struct, frozen=True, kw_only=True):
    """What came of a run: `answer` is None where it was longer than may be read; `text` and `errors` are fit to be read."""

    exit_code: int
    how: str
    answer: bytes | None
    text: str
    errors: str
    timed_out: bool = False
    #: Why it did not start in the project, where that may be the reason.
    why_apart: str = ""
    #: False where the sandbox failed before the program began: the exit code is not its own.
    has_begun: bool = True


def command_of(program: Program, environ: Mapping[str, str]) -> list[str]:
    """Return the words that start a program. Its interpreter is the one of the person's PATH, never one in a project.

    Raises ToolError and OSError.
    """
    from ybs.security.launcher import persons_program, python

    if program.is_python:
        return python("", str(_RUNNER), str(program.path))
    with program.path.open("rb") as file:
        first = file.read(200).partition(b"\n")[0].decode(errors="replace")
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if not words or Path(words[0]).name != "env":
        return [str(program.path)]
    words = words[2:] if words[1:2] == ["-S"] else words[1:]
    if not words:
        return [str(program.path)]
    found = persons_program(words[0], environ=environ)
    if found is None:
        raise ToolError(f"{words[0]}, which runs it, is not on your PATH.")
    return [found, *words[1:], str(program.path)]


def shown_to(program: Program, needs: ToolNeeds, workspace: Workspace) -> list[Path]:
    """Return the paths that a program may read beside the project and the system. Raises ToolError for a path that may not be shown."""
    roots, starter = workspace.roots, workspace.shells.starter
    parent = program.path.parent
    own = [(roots.host.config_folder / name).resolve() for name in ("tools", "plugins")]
    is_own = any(parent.is_relative_to(folder) for folder in own)
    shown = [parent if is_own or starter.may_show(parent) else program.path]
    if program.is_python:
        needed = (Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix))
        shown += [path for path in needed if starter.may_show(path)]
    for name in needs.read:
        path = Path(os.path.abspath(roots.host.expand(name, roots.folder)))  # noqa: PTH100 - no link is resolved
        check_ways(roots.host, [path], [str(roots.folder)])
        if not starter.may_show(path):
            raise ToolError(f"It needs to read {name}, which no program may be shown.")
        shown += [path] if path.exists() else []
    return [path for path in shown if not path.is_relative_to(roots.folder)]


async def run(job: ProgramRun, workspace: Workspace) -> ProgramResult:
    """Run a program to its end; one of the project as a private copy of what is trusted. Raises ToolError and OSError."""
    if any(len(word) > _MOST_IN_ARGUMENT for word in job.words):
        raise ToolError("The arguments are too long for this tool.")
    shells = workspace.shells
    shells.starter.check()
    with ExitStack() as stack:
        placed = _placed(job.program, workspace.roots.host)
        program = await asyncio.to_thread(stack.enter_context, placed)
        return await _run(replace(job, program=program), workspace)


async def _run(job: ProgramRun, workspace: Workspace) -> ProgramResult:
    shells, own_programs = workspace.shells, workspace.own_programs
    in_sandbox = not shells.starter.is_off
    start = await asyncio.to_thread(own_programs.start, job.cwd, in_sandbox=in_sandbox)
    launch, mark = shells.marked(await asyncio.to_thread(_launch, job, workspace, start))
    output = CommandOutput(MOST_CHARS)
    command = ShellCommand(
        launch=launch,
        folder=workspace.roots.folder,
        mark=mark,
        output=output,
        watch=shells.watch,
        given=input_of(job.given),
    )
    ended = await run_command(command, job.seconds)
    if isinstance(ended, Shell):  # nobody can hand it over, as it stands nowhere
        raise ToolError("It was sent to the background.")
    return ProgramResult(
        exit_code=ended.exit_code,
        how=ended.how,
        answer=output.stdout.whole(),
        text=output.stdout.text(workspace.max_output_chars).strip(),
        errors=output.stderr.text(workspace.max_output_chars // 2).strip(),
        timed_out=ended.timed_out,
        why_apart=start.why,
    )


@contextmanager
def _placed(program: Program, host: Host) -> Generator[Program]:
    """Have a program of the project in a folder of ybs's, which goes again, with exactly the bytes that are trusted.

    So nothing that lies beside it in the project is loaded, and no file is exchanged between a look at it and its start.
    Raises ToolError and OSError.
    """
    if not program.in_project:
        yield program
        return
    kept = host.state_folder / "tools"
    try:
        private_file.make_folder(kept)
    except ConfigError as error:
        raise ToolError(str(error)) from error
    with TemporaryDirectory(dir=kept.resolve(), ignore_cleanup_errors=True) as folder:
        project = str(program.path).removesuffix(program.in_project)
        for path, file in program.files.items():
            place = Path(folder, path)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.write_bytes(_large(Path(project, path), file) if file.large_digest else file.data)
            place.chmod(0o700 if file.is_executable else 0o600)
        yield replace(program, path=Path(folder, program.in_project))


def _large(path: Path, trusted: ProjectFile) -> bytes:
    """Return the content of a file of which the digest alone is kept. Raises ToolError, and OSError."""
    data = read_beginning(path, trusted.large_bytes + 1) or b""
    if ProjectFile(data, trusted.is_executable).digest != trusted.digest:
        raise ToolError(f"{path.name} is not the program that you trust.")
    return data


def _launch(job: ProgramRun, workspace: Workspace, start: Start) -> Launch:
    folder, needs, environ = workspace.roots.folder, job.needs, start.environ
    access = Access(
        network=needs.network,
        read_only=needs.project == "read",
        is_alone=True,
        is_persons=not job.program.is_projects,
        shown=(
            *shown_to(job.program, needs, workspace),
            *([job.program.path.parent] if job.program.in_project else []),
        ),
        declared=with_git_setting(
            {
                **project_variables(folder),
                **{name: environ[name] for name in needs.environment if name in environ},
            }
        ),
    )
    command = start.command([*command_of(job.program, environ), *job.words])
    return workspace.shells.starter.start(command, folder, environ, access)


def input_of(given: bytes) -> BinaryIO | None:
    """Return a file in memory that holds the input; where the system has none, one that goes when it is closed."""
    if not given:
        return None
    file: BinaryIO
    if hasattr(os, "memfd_create"):
        file = open(os.memfd_create("ybs-input"), "w+b")  # noqa: PTH123, SIM115 - closed when it was started
    else:
        from tempfile import TemporaryFile  # it takes longer to load than all of this package

        file = TemporaryFile()  # noqa: SIM115
    file.write(given)
    file.seek(0)
    return file
