"""The question whether a project's own settings and programs may count. It comes once a model is chosen."""

from contextlib import suppress
from typing import TYPE_CHECKING

from ybs.frontends.terminal.questions.late import ask_late, says_yes
from ybs.frontends.terminal.start.offers import Read
from ybs.frontends.terminal.start.remarks import say

if TYPE_CHECKING:
    from ybs.config.host import Host
    from ybs.config.review import Review, VariableUse


def ask_trust(host: "Host", review: "Review", read: Read = ask_late) -> bool:
    """Show what the project wants and ask until the answer is a yes or a no. Write a yes down.

    A no that is said is remembered until the files change. Raises OSError or ConfigError where a yes cannot be written.
    """
    from ybs.core.errors import ConfigError
    from ybs.trust.decision import give, refuse
    from ybs.trust.wording import lines_of

    verb = "has changed and asks for" if review.changes else "asks for"
    say(f"This project {verb} the following, which only you can allow:\n")
    for line in lines_of(review):
        say(f"  {line}")
    say(
        "\nTrust it only if you know where it comes from. Without trust, all of this is ignored, and"
    )
    say("your own MCP servers, hooks and tools start outside of it.")
    try:
        is_yes = says_yes("Trust exactly this?", read)
    except (EOFError, KeyboardInterrupt):
        say("")
        return False
    say("")
    if not is_yes:
        with suppress(OSError, ConfigError):  # asked again next time
            refuse(host, review)
            say("ybs asks again when these files change; /trust changes your mind.\n")
        return False
    give(host, review, [use for use in review.grantable if _grants(use, read)])
    return True


def _grants(use: "VariableUse", read: Read) -> bool:
    try:
        return says_yes(f"Your variable {use.words}. Give it?", read)
    except (EOFError, KeyboardInterrupt):
        return False
