"""Explain the mode `ask` at the first start, and ask once in `ybs setup` whether edits need confirmation."""

from pathlib import Path

from ybs.config.host import Host
from ybs.config.settings_file import write_settings
from ybs.frontends.terminal.start.offers import Read, meant
from ybs.frontends.terminal.start.remarks import say, show

KEY = "safety.ask_before_edits"
MODE_ASK = """\
Unasked: any command, with the project read-only and no network, and edits of files that the model has read.
ybs asks before a command writes or uses the network, and before files are created or deleted."""
CHOICES = (
    ("edit without asking", "you see each change, and /undo takes it back"),
    ("ask before each edit", ""),
)


def choose_edits(host: Host, read: Read) -> None:
    """Ask, and write the answer down; nothing is asked where the settings say it already. Raises ConfigError."""
    from ybs.trust.settings import load

    say(f"{MODE_ASK}\n")
    if load(host, folder=Path.cwd()).origins[KEY].layer != "default":
        return
    names = [name for name, _ in CHOICES]
    show(CHOICES)
    try:
        while (
            place := meant(read("Files that the model has read: 1 or 2? ").strip(), names)
        ) is None:
            say("Please type 1 or 2.")
    except (EOFError, KeyboardInterrupt):
        say("")
        return
    write_settings({KEY: place == 1}, host.user_config_file)
    say(
        f"{('Edits are made without asking', 'Edits are asked about')[place]}. Change it with {KEY}.\n"
    )
