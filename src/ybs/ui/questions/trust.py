"""The question whether a project's own settings and programs may count. It comes before the first request."""

from typing import TYPE_CHECKING

from ybs.ui.questions.late import ask_late
from ybs.ui.start.offers import Read
from ybs.ui.start.remarks import say

if TYPE_CHECKING:
    from ybs.config.trust import Review

_YES = ("y", "yes")


def ask_trust(review: "Review", read: Read = ask_late) -> bool:
    """Show what the project wants and ask; whatever is not clearly a yes is a no. Write a yes down.

    Raises OSError or ConfigError where it cannot be written.
    """
    from ybs.config.trust import give
    from ybs.config.trust_words import lines_of

    verb = "was changed and wants" if review.changes else "wants"
    say(f"This project {verb} what only you can allow:\n")
    for line in lines_of(review):
        say(f"  {line}")
    say("\nTrust it only if you know where it comes from. Without trust all of this is ignored.")
    try:
        word = read("Trust exactly this? [y/N] ").strip().lower()
    except (EOFError, KeyboardInterrupt):
        word = ""
    say("")
    if word not in _YES:
        return False
    give(review)
    return True
