"""Word the remedies for a failure as slash commands."""

from collections.abc import Mapping, Sequence
from typing import Final

from ybs.core.errors import YbsError
from ybs.core.remedies import Remedy, RemedyKind, with_advice

#: What fetches the starter model.
INSTALL_STARTER: Final = "ybs models download starter"

#: Half a sentence for each remedy; `{}` is its value.
_WORDS: Final[Mapping[RemedyKind, str]] = {
    "do": "{}",
    "try_again": "try again {} with /retry",
    "choose_model": "choose a model: /model",
    "change_model": "choose another model: /model",
    "enlarge_window": "choose a model with a larger window: /model",
    "set_number": "set it with `ybs config set {} N`",
    "choose_provider": "choose a provider: /provider",
    "change_provider": "choose another provider: /provider",
    "choose_local_model": "choose a model on this machine: /provider NAME MODEL",
    "set_key": "set {} to a valid key",
    "save_key": "save one: /setup",
    "log_in": "log in: /mcp login {}",
    "log_out": "forget the login: /mcp logout {}",
    "set_endpoint": "start ybs with that address: --endpoint ADDRESS",
    "begin_anew": "clear the conversation: /clear",
    "raise_step_limit": "allow more steps with agent.max_iterations",
    "allow_call": "allow it with the rule {} in safety.allow",
    "allow_call_with_network": "allow it with the rule {} in safety.allow, and safety.sandbox_network",
    "allow_outside": "name such commands in safety.outside_sandbox of your own settings",
    "choose_mode": "choose the mode {}: /mode",
    "add_folder": "add the folder: /add-dir {}",
    "run_without_sandbox": "start ybs with --no-sandbox",
    "run_in_own_shell": "run it in your own shell: !!{}",
    "trust_project": "see what it asks for, and trust it: /trust",
    "list_sessions": "list them: /sessions",
    "resume_session": "continue one: /resume",
    "list_memories": "list them: /memories",
    "forget_memory": "delete one: /memories forget N",
    "list_secrets": "list them: /secrets",
    "fork_session": "continue in a copy of it: /resume N fork",
    "rewind_conversation": "take back only the conversation: /rewind 1 conversation",
    "restore_conversation": "bring it back: /restore",
    "change_commits": "turn commits on or off here: /autocommit",
    "set_up": "run `ybs setup` to choose one",
    "install_model": f"fetch it with `{INSTALL_STARTER}`",
    "remove_model": "remove the incomplete download with `ybs models remove`, then try again",
}
_WITHOUT_VALUE: Final[Mapping[RemedyKind, str]] = {
    "try_again": "try again with /retry",
    "set_key": "name its key: --provider NAME beside --endpoint, or providers.NAME.api_key_env",
    "add_folder": "add the folder: /add-dir FOLDER",
}


def word(remedy: Remedy) -> str:
    """Return a remedy in the words of a chat."""
    if not remedy.value and (text := _WITHOUT_VALUE.get(remedy.kind)):
        return text
    return _WORDS[remedy.kind].replace("{}", remedy.value)


def advised(message: str, remedies: Sequence[Remedy], *, separator: str = "\n") -> str:
    """Return a message and what to do about it."""
    return with_advice(message, remedies, word, separator=separator)


def told(error: YbsError) -> str:
    """Return what a chat says of an error."""
    return advised(str(error), error.remedies)
