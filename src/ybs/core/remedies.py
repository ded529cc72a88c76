"""Remedies for a failure, as values: each frontend words them in its own terms.

A message says what happened and why. What to do about it depends on where the person reads it: in a chat they
type a command, for a script they start again with an option. So an error, and an event that carries a message,
has remedies, and the frontend that shows it words them.
"""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

#: Alternatives that a person has. What `value` holds stands behind each; most need none.
RemedyKind: TypeAlias = Literal[
    "do",  # something outside of ybs, which is the same everywhere: half a sentence
    "try_again",  # when: "in 5 s"
    "choose_model",
    "change_model",
    "enlarge_window",
    "set_number",  # the setting
    "choose_provider",
    "change_provider",
    "choose_local_model",
    "set_key",  # the environment variable
    "save_key",
    "log_in",  # the MCP server
    "log_out",  # the MCP server
    "set_endpoint",
    "begin_anew",
    "raise_step_limit",
    "allow_call",  # the rule
    "allow_call_with_network",  # the rule
    "allow_outside",
    "choose_mode",  # the mode
    "add_folder",  # the folder; empty where its name is not known
    "run_without_sandbox",
    "run_in_own_shell",  # the command
    "trust_project",
    "list_sessions",
    "resume_session",
    "list_memories",
    "forget_memory",
    "list_secrets",
    "fork_session",
    "rewind_conversation",
    "restore_conversation",
    "change_commits",
    "set_up",
    "install_model",
    "remove_model",
]


class Remedy(Struct, frozen=True, omit_defaults=True):
    """One thing that a person can do about a failure."""

    kind: RemedyKind
    value: str = ""


#: Returns half a sentence; an empty text where a frontend has no way to do it.
Wording: TypeAlias = Callable[[Remedy], str]


def advice(remedies: Sequence[Remedy], word: Wording) -> str:
    """Return one sentence that names all remedies, without a full stop; empty where there are none."""
    text = ", or ".join(filter(None, dict.fromkeys(map(word, remedies))))
    return text[:1].upper() + text[1:]


def with_advice(
    message: str, remedies: Sequence[Remedy], word: Wording, *, separator: str = "\n"
) -> str:
    """Return a message and what to do about it; in one line with a space for `separator`."""
    said = advice(remedies, word)
    if not said:
        return message
    if separator == " ":
        said += "."
        message += "" if message.endswith((".", "!", "?", ":", "…")) else "."
    return f"{message}{separator}{said}" if message else said
