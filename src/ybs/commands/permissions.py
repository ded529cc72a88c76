"""The commands /permissions and /add-dir: rules that allow or deny without a question, and one more folder to work in."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ybs.config.host import unnamed
from ybs.core.errors import ConfigError, Refused
from ybs.session.reply import Reply, Table
from ybs.session.session import Session

if TYPE_CHECKING:
    from ybs.config.layers import Loaded
    from ybs.security.policy.policy import Policy
    from ybs.security.policy.rules import PolicyRule, RuleOrigin


async def add_dir(session: Session, argument: str) -> Reply:
    """Let tools and commands work in one more folder, or list the folders."""
    if not argument:
        return Reply(tables=(folders_table(session),))
    return await asyncio.to_thread(_add_folders, session, argument)


def folders_table(session: Session) -> Table:
    """List the folders that tools work in, and what they may read besides."""
    roots, short = session.environment.roots, session.host.short
    rows = [("works in", short(str(folder))) for folder in roots.folders]
    rows += [("may read", short(str(path))) for path in roots.reading]
    return Table.of(rows)


def _add_folders(session: Session, argument: str) -> Reply:
    roots, short = session.environment.roots, session.host.short
    try:
        named = session.host.expand(argument.strip("\"'"), session.folder)
        folder = named.resolve()
    except (ValueError, RuntimeError):  # no name of a folder, or links in a circle
        return Reply.error(f"{argument} is not a folder.")
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        return Reply.error(f"{short(str(folder))} {what}.")
    if roots.holds(roots.admitted(named)):
        return Reply(text=f"ybs works in {short(str(folder))} already.")
    roots.add(folder)
    session.host.work_in(folder)
    if session.environment.incognito.is_on:
        unnamed.add(str(folder))
    session.context.tell(f"The person lets you read and change files in {folder} from now on.")
    text = f"ybs works in {short(str(folder))} too, until this session ends."
    return Reply(
        text=text,
        notes=(*session.environment.secure_code([folder]), *_commands_there(session, folder)),
    )


def _commands_there(session: Session, folder: Path) -> tuple[str, ...]:
    """Open the folder for commands; say so where that cannot be done."""
    try:
        session.environment.sandbox.add_folder(folder)
    except Refused as error:
        return (f"Commands in the sandbox cannot write there: {error}",)
    return ()


USAGE = """\
/permissions allow RULE       what needs no question in this session, such as run_shell(pytest *) or write_file(src/**)
/permissions deny RULE        what is refused in this session
/permissions remove N         take rule N back
With `project` or `user` before RULE it is kept: for this project, or for all your projects."""
#: What stands before a rule that is to be kept, and where it is kept.
_KEPT: "dict[str, RuleOrigin]" = {"session": "session", "project": "project", "user": "settings"}
_KINDS = {"allow": "allowed", "always": "allowed", "ask": "asks", "deny": "refused"}
_PLACES = {"session": "this session", "project": "this project, kept", "start": "command line"}


async def permissions(session: Session, argument: str) -> Reply:
    """List what is allowed and denied, add a rule, or take one back."""
    policy, loaded = session.environment.policy, session.loaded
    more = [spec.name for spec in session.agent.toolbox.specs()]
    reply = await asyncio.to_thread(answer, policy, loaded, session.folder, argument, more)
    if argument:
        return reply
    rows = [("", *map(str, row.cells), "") for row in folders_table(session).rows]
    return replace(reply, tables=(*reply.tables, Table.of(rows)))


def answer(
    policy: "Policy", loaded: "Loaded", folder: Path, argument: str, more: Sequence[str] = ()
) -> Reply:
    """Do what the words behind the command say; `more` are tools that are there. Raises ConfigError and OSError."""
    word, _, rest = argument.strip().partition(" ")
    match word.lower(), rest.strip():
        case (("" | "list"), ""):
            return _listing(policy, loaded)
        case ("allow" | "deny") as kind, rest if rest and rest.lower() not in _KEPT:
            return _add(policy, loaded, kind, _known(loaded, folder, rest, more))
        case "remove", number if number.isdecimal():
            return _remove(policy, loaded, int(number))
        case _:
            return Reply.error(f"Usage:\n{USAGE}")


def _listing(policy: "Policy", loaded: "Loaded") -> Reply:
    rules = policy.rules.listed
    rows = [
        (str(number), _KINDS[rule.kind], rule.text, _place(rule, loaded))
        for number, rule in enumerate(rules, 1)
    ]
    text = "" if rows else f"No rules: the mode {policy.mode} alone decides what is asked about."
    warning = policy.rules.warning
    return Reply(
        text=text, tables=(Table.of(rows),), notes=(*([warning] * bool(warning)), "", USAGE)
    )


def _known(loaded: "Loaded", folder: Path, words: str, more: Sequence[str]) -> str:
    """Return the words if there is a tool that the rule in them is about. Raises ConfigError."""
    from ybs.security.policy.rules import rule_of
    from ybs.session.checking import unknown_in

    first, _, rest = words.partition(" ")
    rule = rule_of(rest.strip() if rest and first.lower() in _KEPT else words)
    if complaint := unknown_in(loaded, folder, rule.tool, more):
        raise ConfigError(f"The rule was not added: {complaint}")
    return words


def _add(policy: "Policy", loaded: "Loaded", kind: str, words: str) -> Reply:
    from ybs.security.policy.rules import PolicyRule

    first, _, rest = words.partition(" ")
    origin = _KEPT.get(first.lower()) if rest else None
    text = rest.strip() if origin else words
    rule = PolicyRule("allow" if kind == "allow" else "deny", text, origin or "session")
    if rule.origin != "session" and not policy.rules.can_keep:
        raise ConfigError(f"Nothing is kept: this session is incognito. Leave `{first}` out.")
    policy.rules.add(rule)
    if rule.origin == "settings":
        _write(loaded, rule, is_wanted=True)
    state = "Allowed without a question" if kind == "allow" else "Refused"
    return Reply(text=f"{state} from now on: {text} ({_place(rule, loaded)})")


def _remove(policy: "Policy", loaded: "Loaded", number: int) -> Reply:
    rules = policy.rules.listed
    if not 1 <= number <= len(rules):
        return Reply.error(f"There is no rule {number}; /permissions lists them.")
    rule = rules[number - 1]
    if rule.origin == "settings" and not _write(loaded, rule, is_wanted=False):
        place = _place(rule, loaded)
        return Reply.error(f"{rule.text} stands in {place}. Remove it there.")
    policy.rules.remove(rule)
    return Reply(text=f"Removed: {rule.text} ({_place(rule, loaded)})")


def _write(loaded: "Loaded", rule: "PolicyRule", *, is_wanted: bool) -> bool:
    """Write a rule into the person's own settings, or take it out; return whether anything was changed."""
    from ybs.config.settings_file import change_list

    file = loaded.host.user_config_file
    return change_list(f"safety.{rule.kind}", rule.text, is_wanted=is_wanted, path=file)


def _place(rule: "PolicyRule", loaded: "Loaded") -> str:
    """Return where a rule comes from."""
    if rule.origin != "settings":
        return _PLACES[rule.origin]
    from ybs.config.report import locate

    place = locate(loaded, ("safety", rule.kind), rule.text)
    if place.layer == "default":  # it was added a moment ago
        return loaded.host.short(str(loaded.host.user_config_file))
    return loaded.host.short(place.text.rpartition(": ")[0] or place.text)
