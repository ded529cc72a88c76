"""Names of commands that people type who come from other agents: the command of ybs, or a line that says how it is done here."""

from typing import Final

#: Another agent's name of a command, and the command that does the same.
ALIASES: Final = {
    "about": "status",
    "approval-mode": "mode",
    "approvals": "permissions",
    "allowed-tools": "permissions",
    "auth": "setup",
    "bashes": "jobs",
    "reasoning-effort": "effort",
    "think": "effort",
    "think-tokens": "effort",
    "branch": "fork",
    "checkpoint": "rewind",
    "checkpoints": "rewind",
    "compress": "compact",
    "history": "sessions",
    "info": "status",
    "keys": "help",
    "login": "setup",
    "memory": "memories",
    "models": "model",
    "remember": "memorize",
    "reset": "clear",
    "settings": "config",
    "stats": "cost",
    "subagents": "agents",
    "summarize": "compact",
    "tasks": "jobs",
    "tokens": "context",
    "usage": "cost",
}
_MODES: Final = (
    "Modes are chosen with /mode: plan reads only, ask asks first, auto works without asking."
)
_FILES: Final = "Write @ and the file's path in your prompt: its content is sent along."
_LATER: Final = "This is not part of this version of ybs. /help lists what there is."
#: What has no command in ybs: how it is done instead.
HINTS: Final = {
    "add": _FILES,
    "architect": _MODES,
    "ask": _MODES,
    "build": "Ask for it in a prompt: the model knows the project's commands. Or type !COMMAND: it runs in the sandbox, and the model sees its output.",
    "bug": "Report a bug where you got ybs from; /doctor shows what to mention.",
    "chat": "/save NAME saves a copy of this session, /resume continues a saved one.",
    "code": _MODES,
    "continue": "Type what to do next, or /resume to continue a saved session.",
    "drop": "Files are not added for good: what was sent is in the conversation. /clear starts it over.",
    "editor": "Ctrl-G (or Ctrl-X Ctrl-E) opens your prompt in your editor.",
    "fetch": "Ask for the page in a prompt. `ybs tools install web_fetch` gives the model a tool that reads pages.",
    "feedback": "Report a bug where you got ybs from; /doctor shows what to mention.",
    "git": "Type !git and the rest: !COMMAND runs it in the sandbox, !!COMMAND in your own shell.",
    "ide": _LATER,
    "lint": "Type !COMMAND to run a linter; the model sees its output and can fix what it found.",
    "ls": "/context shows the documents that the model sees; !ls lists files.",
    "map": "Run `ybs map` in a shell; the model gets the map of the project by itself.",
    "mention": _FILES,
    "paste": "Ctrl-V attaches an image from the clipboard; text is pasted as your terminal does it.",
    "pr-comments": "Ask for it in a prompt, or run your command with !COMMAND and let the model read its output.",
    "privacy": "ybs talks to the provider that you chose and to nobody else: no telemetry, no update check.",
    "read-only": "/mode plan lets the model read and plan, and change nothing.",
    "release-notes": "CHANGELOG.md of ybs says what has changed; /status shows the version.",
    "review": "Ask for it in a prompt, such as: review my uncommitted changes. /diff shows what ybs has changed.",
    "run": "Type !COMMAND: it runs in the sandbox, and the model sees its output.",
    "search": "Ask in a prompt. `ybs tools install web_search` gives the model a tool that searches the web.",
    "security-review": "Ask for it in a prompt, such as: review my uncommitted changes for security problems.",
    "statusline": "The line at the bottom is fixed; the settings under ui change the rest: /config",
    "terminal-setup": "Nothing has to be set up: Shift-Enter, Alt-Enter or Ctrl-J insert a new line. /doctor checks your terminal.",
    "test": "Type !COMMAND to run the tests; the model sees the output and can fix what fails.",
    "theme": "ybs uses the colours of your terminal; ui.color turns them off: /config",
    "upgrade": "ybs does not update itself; upgrade it as you installed it, such as with `uv tool upgrade ybs`.",
    "vim": "Set ui.editing_mode to vi: `ybs config set ui.editing_mode vi`",
    "vt": "Type !!COMMAND: it runs in your own shell, on this terminal, and you drive it; /share shows the model what it printed.",
    "web": "`ybs tools install web_search` and `ybs tools install web_fetch` let the model search and read the web.",
    "yolo": _MODES,
}
