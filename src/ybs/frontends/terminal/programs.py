"""Subcommands of ybs that run on the terminal of a chat, as programs of their own."""

from pathlib import Path

from ybs.config.layers import PREFIX, path_of
from ybs.frontends.terminal.session import TerminalSession
from ybs.providers.registry import is_named_at_address
from ybs.security.sandbox.launch import Launch
from ybs.session.status import Status


async def run_subcommand(
    name: str, session: TerminalSession, *, using: str = "", has_input: bool = True
) -> int:
    """Run a subcommand with the Python and the ybs of this process, for a session's folder and model; return its exit code.

    The model goes by variables: its address may hold a login, and everybody on the machine sees the words of a command.
    """
    from subprocess import DEVNULL

    from ybs.security.launcher import environ_away, python, start_in_loop

    host, folder = session.host, Path(session.status().folder)
    environ = environ_away(host.environ, for_ybs=True)
    if name == "doctor" and (model := _model_variables(session)):
        others = {each: value for each, value in environ.items() if path_of(each) not in _OF_MODEL}
        environ = {**others, **model}
    words = python("-m", "ybs", name, "--folder", str(folder), "--using", using)
    process = await start_in_loop(
        Launch(words, environ),
        stdin=None if has_input else DEVNULL,
        stdout=None,
        stderr=None,
        has_own_group=False,
    )
    return await process.wait()


_OF_MODEL = ("llm", "provider"), ("llm", "model"), ("llm", "endpoint")


def _model_variables(session: TerminalSession) -> dict[str, str]:
    """Return the variables that name the model in use; none where nobody chose one."""
    llm, state = session.config.llm, session.status()
    is_as_begun = state.provider == (llm.provider or state.provider)
    endpoint = llm.endpoint if is_as_begun else None
    if not (endpoint or llm.provider):
        return {}
    is_alone = endpoint and not is_named_at_address(
        session.config
    )  # else it would be named with its provider
    provider = None if is_alone else state.provider
    named = zip(_OF_MODEL, (provider, state.model, endpoint), strict=True)
    return {f"{PREFIX}LLM__{name.upper()}": value for (_, name), value in named if value}


def chosen_line(session: TerminalSession, state: Status) -> str:
    """Return the line that takes the model of the settings as they are now; nothing where it is in use.

    Whether edits are asked about counts from now on.
    """
    from ybs.trust.settings import load

    config = load(session.host, folder=Path(state.folder)).config
    if config.safety.ask_before_edits:
        session.environment.policy.asks_before_edits = True
    llm = config.llm
    if not llm.provider or (llm.provider, llm.model) == (state.provider, state.model):
        return ""
    return f"/provider {llm.provider} {llm.model or ''}".rstrip()
