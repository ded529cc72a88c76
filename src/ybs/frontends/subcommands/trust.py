"""`ybs trust`: see what a project wants, trust exactly that, or take the trust back."""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.frontends.headless.output import write, write_json
from ybs.trust.decision import review_of, revoke
from ybs.trust.settings import load

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from ybs.config.host import Host
    from ybs.config.review import Review
    from ybs.session.options import Options


def trust(arguments: "Namespace", options: "Options") -> int:
    """Do it and return the exit code. Raises ConfigError for a project that cannot be trusted, and OSError."""
    host, action, folder = options.host, arguments.action, options.folder
    grants, is_json = arguments.grant, arguments.format == "json"
    if action == "revoke":
        return _revoke(host, folder, is_json=is_json)
    review = review_of(load(host, folder=folder), folder)
    if action == "give" and (grants or not review.is_trusted):
        from ybs.trust.decision import grant

        grant(host, review, grants)
        changes, review = review.changes, review_of(load(host, folder=folder), folder)
        review = replace(review, changes=changes)
    _say(review, is_json=is_json, is_trusted=review.is_trusted)
    return 0


def _revoke(host: "Host", folder: "Path", *, is_json: bool) -> int:
    was_trusted = revoke(host, folder)
    if is_json:
        write_json({"folder": str(folder.resolve()), "is_trusted": False, "was": was_trusted})
    else:
        write(
            "This project is no longer trusted." if was_trusted else "This project was not trusted."
        )
    return 0


def _say(review: "Review", *, is_json: bool, is_trusted: bool) -> None:
    from ybs.trust.wording import lines_of, state_of

    lines = lines_of(review)
    if is_json:
        answer = {"folder": str(review.folder), "is_trusted": is_trusted}
        wants = lines if review.files or review.items else []
        write_json({**answer, "wants": wants, "files": list(review.files)})
        return
    for line in lines:
        write(line)
    for use in review.grantable if is_trusted else ():
        write(f"Grant it with: ybs trust give --grant {use.name}")
    if is_trusted or not review.problem:
        how = "" if is_trusted else " Trust it with: ybs trust give"
        write(state_of(review, is_trusted=is_trusted) + how)
