"""The second choice of `ybs setup`: whether edits of files that the model has read are asked about as well. Asked once."""

from pathlib import Path

from ybs.config.host import Host
from ybs.config.schema import Safety
from ybs.config.settings_file import write_settings
from ybs.frontends.terminal.start.offers import Read
from ybs.frontends.terminal.start.remarks import say

KEY = "safety.require_confirmation"
QUESTION = """\
ybs asks before it creates or deletes files and before it runs commands that do more than read.
A file that the model has read it edits without asking: you see each change, and /undo takes it back."""
ASK = "Ask before such edits, too? [y/N] "


def choose_edits(host: Host, read: Read) -> None:
    """Ask, and write the answer down; nothing is asked where the settings say it already. Raises ConfigError."""
    from ybs.trust.settings import load

    loaded = load(host, folder=Path.cwd())
    if loaded.origins[KEY].layer != "default":
        return
    say(QUESTION)
    try:
        answer = read(ASK).strip().lower()
    except (EOFError, KeyboardInterrupt):
        say("")
        return
    asks = answer in ("y", "yes")
    shipped = Safety().require_confirmation
    write_settings({KEY: [*shipped, "edit_file"] if asks else [*shipped]}, host.user_config_file)
    say(
        "Edits are asked about.\n"
        if asks
        else "Edits of files that were read are not asked about.\n"
    )
