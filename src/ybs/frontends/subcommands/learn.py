"""`ybs learn`: recurring tasks in saved sessions, and the commands or schedules made of them."""

from typing import TYPE_CHECKING, Final

from ybs.commands.learn import RecurringTasks, number_of, reason
from ybs.core.errors import YbsError
from ybs.frontends.headless.output import agrees, warn, write, write_json
from ybs.frontends.layout import lines_of
from ybs.frontends.tty import columns
from ybs.learning.draft import draft_of
from ybs.learning.schedule import rhythm_of
from ybs.session.settings import load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options
    from ybs.session.reply import Reply

_REFUSED: Final = 5


def learn(arguments: "Namespace", options: "Options") -> int:
    """Do what the arguments say, and return the exit code. Raises YbsError."""
    loaded = load_settings(options)
    warn(loaded.warnings)
    folder = options.folder.resolve()
    place = loaded.host.expand(loaded.config.session.storage_path, folder)
    learning = RecurringTasks(loaded.host, place, folder)
    try:
        return _done(learning, arguments)
    except OSError as error:
        raise YbsError(f"{error.filename} cannot be used: {error.strerror}") from error


def _done(learning: RecurringTasks, arguments: "Namespace") -> int:
    word = arguments.words[0] if arguments.words else ""
    match arguments.action:
        case "list" if arguments.format == "json":
            write_json(_data(learning))
            return 0
        case "accept":
            return _accept(learning, number_of(word), arguments)
        case "schedule":
            return _schedule(learning, number_of(word), arguments)
        case "list":
            reply = learning.listed()
        case "forget":
            reply = learning.forget("all" if arguments.all else word)
        case action:
            reply = learning.answer(action, word)
    return _print(reply)


def _accept(learning: RecurringTasks, number: int, arguments: "Namespace") -> int:
    shown = learning.show(number)
    _print(shown)
    if not shown.diff:
        return 0
    if not _is_agreed("Write it? [y/N] ", arguments):
        return _REFUSED
    return _print(learning.accept(number, in_project=arguments.project))


def _schedule(learning: RecurringTasks, number: int, arguments: "Namespace") -> int:
    mode = arguments.mode or "plan"
    if arguments.gateway:
        allow = tuple(arguments.allow)
        rights = f"in the mode {mode}" + (f" and with --allow {', '.join(allow)}" if allow else "")
        if not _is_agreed(f"Have the gateway run it, {rights}? [y/N] ", arguments):
            return _REFUSED
        return _print(learning.schedule_in_gateway(number, mode=mode, allow=allow))
    _print(learning.schedule(number, mode=mode, with_cron=arguments.cron))
    if not arguments.write or arguments.cron:
        return 0
    if not _is_agreed("Write these files? [y/N] ", arguments):
        return _REFUSED
    return _print(learning.write_schedule(number, mode=mode))


def _is_agreed(question: str, arguments: "Namespace") -> bool:
    refusal = "this needs a yes, and there is no terminal to ask on; --yes agrees"
    return arguments.yes or agrees(question, refusal)


def _print(reply: "Reply") -> int:
    for line in lines_of(reply, columns()):
        write(line)
    if reply.diff:
        write(reply.diff)
    return int(reply.is_error)


def _data(learning: RecurringTasks) -> object:
    learned = learning.look()
    tasks = [
        {
            "id": each.id,
            "state": learned.state_of(each.id),
            "reason": reason(each),
            "requests": [request.text for request in each.last],
            "rhythm": rhythm.words if (rhythm := rhythm_of(each)) else None,
            "command": draft_of(each).text,
        }
        for each in learned.listed()
    ]
    said = [{"id": f"p{each.id}", "text": each.text} for each in learned.preferences.recurring()]
    return {"tasks": tasks, "statements": said}
