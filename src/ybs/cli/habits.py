"""Words and options of other agents, with their names in ybs."""

import itertools
from collections.abc import Sequence

#: Options of other agents: what ybs has instead.
OPTIONS = {
    "--yolo": "--mode auto works without asking, except before destructive actions; --mode bypass never asks",
    "--dangerously-skip-permissions": "--mode bypass never asks; --mode auto asks before destructive actions only",
    "--dangerously-bypass-approvals-and-sandbox": "--mode bypass --no-sandbox does the same",
    "--full-auto": "--mode auto works without asking, except before destructive actions",
    "--yes-always": "--mode auto works without asking, except before destructive actions",
    "--permission-mode": "it is called --mode: ask, accept-edits, auto, plan, deny or bypass",
    "--approval-mode": "it is called --mode: ask, accept-edits, auto, plan, deny or bypass",
    "--ask-for-approval": "it is called --mode: ask, accept-edits, auto, plan, deny or bypass",
    "--allowedTools": "it is called --allow TOOL[:PATTERN]",
    "--allowed-tools": "it is called --allow TOOL[:PATTERN]",
    "--disallowedTools": "it is called --deny TOOL[:PATTERN]",
    "--disallowed-tools": "it is called --deny TOOL[:PATTERN]",
    "--session-id": "it is called --resume ID",
    "--message": "give the prompt as an argument: ybs --print 'PROMPT'",
    "--prompt": "give the prompt as an argument: ybs 'PROMPT', or ybs --print 'PROMPT'",
    "--query": "give the prompt as an argument: ybs 'PROMPT', or ybs --print 'PROMPT'",
    "--api-key": "`ybs setup` saves a key; an option would leave it in the history of your shell",
    "--openai-api-key": "`ybs setup` saves a key; an option would leave it in the history of your shell",
    "--cd": "change to the folder first; --add-dir DIR adds another folder",
    "-r": "write --resume ID, or --continue for the newest session",
    "-y": "--mode auto works without asking, except before destructive actions",
}
#: Prompts of one word that are subcommands of other agents: what ybs has instead.
WORDS = {
    "login": "`ybs setup` chooses a provider and saves its key",
    "auth": "`ybs setup` chooses a provider and saves its key",
    "logout": "the keys that `ybs setup` saved are in ~/.config/ybs/keys.json; delete a line to forget one",
    "update": "ybs does not update itself; upgrade it as you installed it, such as with `uv tool upgrade ybs`",
    "upgrade": "ybs does not update itself; upgrade it as you installed it, such as with `uv tool upgrade ybs`",
    "resume": "write `ybs --resume`, or `ybs --continue` for the newest session",
    "continue": "write `ybs --continue`",
    "exec": "write `ybs --print 'PROMPT'`",
    "run": "write `ybs --print 'PROMPT'`",
    "chat": "write `ybs` without a word to open a chat",
    "init": "type /init in a chat",
    "settings": "write `ybs config`",
    "history": "write `ybs sessions`",
    "man": "write `ybs completion man`",
}


def option_hint(words: Sequence[str]) -> str:
    """Return what ybs has instead of the first option that only other agents have, or nothing."""
    for word in words:
        if word == "--":
            break
        if hint := OPTIONS.get(word.partition("=")[0]):
            return f"there is no option {word.partition('=')[0]}: {hint}"
    return ""


def continue_hint(words: Sequence[str]) -> str:
    """Return words for who writes -c to continue, as with other agents: with no file behind it, or with a prompt."""
    for option, value in itertools.pairwise([*words, "-"]):
        if option == "--":
            break
        if option == "-c" and (value.startswith("-") or len(value.split()) > 1):
            return "-c reads a configuration FILE here; write `ybs --continue` to continue the newest session"
    return ""


def provider_hint(words: Sequence[str]) -> str:
    """Return words for who gives -p a prompt, as other agents take one there; or nothing."""
    for option, value in itertools.pairwise(words):
        if option == "--":
            break
        if option == "-p" and (not value.strip() or len(value.split()) > 1):
            return "-p takes the name of a provider here; write `ybs --print 'PROMPT'` (or -P)"
    return ""
