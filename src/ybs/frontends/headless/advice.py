"""Word remedies for a run without a terminal: options and subcommands, and the rule that allows a refused call."""

from collections.abc import Mapping, Sequence
from typing import Final

from ybs.core.errors import YbsError
from ybs.core.ports import Answer, Question
from ybs.core.remedies import Remedy, RemedyKind, with_advice

#: Half a sentence for each remedy; `{}` is its value, quoted for a shell where it is typed.
_WORDS: Final[Mapping[RemedyKind, str]] = {
    "do": "{}",
    "try_again": "try again {}",
    "choose_model": "name one with --model NAME (or llm.model)",
    "change_model": "choose another model with --model NAME",
    "enlarge_window": "choose a model with a larger window with --model NAME",
    "set_number": "set it with `ybs config set {} N`",
    "choose_provider": "name one with --provider NAME (or llm.provider)",
    "change_provider": "choose another provider with --provider NAME",
    "choose_local_model": "choose one that does: --provider llamacpp, or --provider ollama --model NAME",
    "set_key": "set {} to a valid key",
    "save_key": "save one with `ybs setup`",
    "log_in": "log in with `ybs mcp login {}`",
    "log_out": "forget the login with `ybs mcp logout {}`",
    "set_endpoint": "name the address with --endpoint",
    "begin_anew": "start a new session without --continue",
    "raise_step_limit": "allow more steps with --max-turns (or agent.max_iterations)",
    "allow_call": "--allow {}",
    "allow_call_with_network": "--allow {} and YBS_SAFETY__SANDBOX_NETWORK=true in the environment",
    "allow_outside": "name such commands in safety.outside_sandbox of your own settings, which lets them run outside the sandbox unasked",
    "choose_mode": "--mode {}",
    "add_folder": "start ybs with --add-dir {}",
    "run_without_sandbox": "run it without the sandbox: --no-sandbox",
    "run_in_own_shell": "run it yourself: {}",
    "trust_project": "see what the project asks for, and trust it, with `ybs trust`",
    "list_sessions": "list them with `ybs sessions`",
    "resume_session": "resume one anyway with --resume ID",
    "list_memories": "list them with /memories in a chat",
    "forget_memory": "delete one with /memories forget N in a chat",
    "list_secrets": "",
    "fork_session": "continue in a copy of it with --fork",
    "rewind_conversation": "",
    "restore_conversation": "",
    "change_commits": "set git.auto_commit in your own settings to turn commits on or off",
    "set_up": "run `ybs setup` to choose one",
    "install_model": "fetch it with `ybs models download starter`",
    "remove_model": "remove the incomplete download with `ybs models remove`, then try again",
}
_WITHOUT_VALUE: Final[Mapping[RemedyKind, str]] = {
    "try_again": "try again",
    "set_key": "name its key: --provider NAME beside --endpoint, or providers.NAME.api_key_env",
    "add_folder": "start ybs with --add-dir DIR",
}
#: Their values are typed into a shell.
_QUOTED: Final = ("allow_call", "allow_call_with_network", "add_folder", "log_in", "log_out")


def _quoted(value: str) -> str:
    from shlex import quote  # only where something failed

    if value.isprintable():
        return quote(value)
    # In one line: what stands behind a line end would look like words of ybs's own.
    escaped = value.encode("unicode_escape").decode().replace("'", "\\'")
    return f"$'{escaped}'"


def word(remedy: Remedy) -> str:
    """Return a remedy in the words of a command line; an empty text where a script cannot do it."""
    if not remedy.value and (text := _WITHOUT_VALUE.get(remedy.kind)):
        return text
    if remedy == Remedy("choose_mode", "bypass"):
        return "--mode bypass, which never asks"
    value = _quoted(remedy.value) if remedy.kind in _QUOTED else remedy.value
    return _WORDS[remedy.kind].replace("{}", value)


def advised(message: str, remedies: Sequence[Remedy], *, separator: str = "\n") -> str:
    """Return a message and what to do about it."""
    return with_advice(message, remedies, word, separator=separator)


def told(error: YbsError) -> str:
    """Return what a command line says of an error."""
    return advised(str(error), error.remedies)


async def refuse(question: Question) -> Answer:
    """Refuse, since nobody can be asked, and say what would allow just this call."""
    return refusal(question, "it needs a confirmation, and there is no terminal to ask on", "ybs")


def refusal(question: Question, cause: str, program: str) -> Answer:
    """Return a refusal for that cause, with the options of the program that would allow just this call."""
    ways = [word(each) for each in question.remedies]
    if not ways:
        return Answer(is_allowed=False, reason=cause, is_unattended=True)
    by_rule = next((each for each in question.warnings if " in safety.ask says to ask" in each), "")
    if by_rule:
        reason = (
            f"{cause}, and {by_rule}; you can remove it from the settings, or start {program} with "
        )
    else:
        are_options = all(way.startswith("-") for way in ways)
        reason = f"{cause}; allow it with " if are_options else f"{cause}; "
    return Answer(is_allowed=False, reason=reason + " or ".join(ways), is_unattended=True)
