"""`ybs trust`: see what a project wants, trust exactly that, or take the trust back."""

import sys
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ybs.frontends.headless.output import tell, write, write_json
from ybs.trust.decision import digest_of, review_of, revoke
from ybs.trust.settings import load
from ybs.trust.wording import lines_of, state_of

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from ybs.config.host import Host
    from ybs.config.review import Review
    from ybs.session.options import Options

REFUSED: Final = 5
_UNASKED = "nobody can be asked here, and nobody has seen this; with the digest above it is trusted"
_CHANGED = "this is not what had that digest"


def trust(arguments: "Namespace", options: "Options") -> int:
    """Do it and return the exit code. 5: nobody said yes. Raises ConfigError for a project that cannot be trusted, and OSError."""
    host, action, folder = options.host, arguments.action, options.folder
    is_json = arguments.format == "json"
    if action == "revoke":
        return _revoke(host, folder, is_json=is_json)
    review = review_of(load(host, folder=folder), folder)
    if action == "give" and (arguments.grant or not review.is_trusted):
        return _give(host, review, arguments)
    _say(review, is_json=is_json)
    return 0


def _give(host: "Host", review: "Review", arguments: "Namespace") -> int:
    """Trust what was read, once somebody has seen it: it is not read again."""
    from ybs.trust.decision import grant, named_in

    names, digest, is_json = arguments.grant, arguments.digest, arguments.format == "json"
    uses = named_in(review, names)
    is_seen = digest == digest_of(review) if digest else review.is_trusted
    if is_seen or review.problem or (review.asks_for_nothing and not digest):
        grant(host, review, names)
        granted = review.granted.union(uses)
        _say(replace(review, is_trusted=True, granted=granted), is_json=is_json)
        return 0
    if not (digest or is_json) and sys.stdin.isatty() and sys.stdout.isatty():
        from ybs.frontends.terminal.questions.late import ask_trust

        is_yes = ask_trust(host, review, named=names)
        write(state_of(review, is_trusted=is_yes))
        return 0 if is_yes else REFUSED
    _say(review, is_json=is_json)
    tell(f"ybs: Not trusted: {_CHANGED if digest else _UNASKED}.")
    return REFUSED


def _revoke(host: "Host", folder: "Path", *, is_json: bool) -> int:
    was_trusted = revoke(host, folder)
    if is_json:
        write_json({"folder": str(folder.resolve()), "is_trusted": False, "was": was_trusted})
    else:
        write(
            "This project is no longer trusted." if was_trusted else "This project was not trusted."
        )
    return 0


def _say(review: "Review", *, is_json: bool) -> None:
    lines, is_trusted, digest = lines_of(review), review.is_trusted, digest_of(review)
    if is_json:
        answer = {"folder": str(review.folder), "is_trusted": is_trusted, "digest": digest}
        wants = [] if review.asks_for_nothing else lines
        write_json({**answer, "wants": wants, "files": list(review.files)})
        return
    for line in lines:
        write(line)
    for use in review.grantable if is_trusted else ():
        write(f"Grant it with: ybs trust give --grant {use.name}")
    if is_trusted or not review.problem:
        how = "Trust it with:" if review.asks_for_nothing else "Trust exactly this with:"
        shown = "" if review.asks_for_nothing else f" {digest}"
        how = "" if is_trusted else f" {how} ybs trust give{shown}"
        write(state_of(review, is_trusted=is_trusted) + how)
