"""The commands of a chat. What a session has a command for is that command; its tables become text, and its menus buttons."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ybs.commands.advice import told
from ybs.commands.models import MODE_WORDS
from ybs.core.errors import YbsError
from ybs.frontends.gateway.asking import ChatQuestions, plain
from ybs.frontends.gateway.channel import Button, Incoming
from ybs.frontends.gateway.rates import DailyBudget
from ybs.frontends.markdown import markdown_of
from ybs.session.reply import Menu, MenuItem, Reply

if TYPE_CHECKING:
    from ybs.frontends.gateway.chats import Chats
    from ybs.frontends.gateway.turns import Turns
    from ybs.session.session import Session

#: What everybody may do who may speak, and what the owner alone.
FOR_ALL: Final[Mapping[str, str]] = {
    "help": "list the commands",
    "new": "start a new conversation",
    "stop": "stop what runs here, and what waits",
    "status": "show the model, the mode and what runs",
}
FOR_OWNERS: Final[Mapping[str, str]] = {
    "model": "choose the model",
    "mode": "choose what may be done without asking",
    "project": "work in a project of the settings, or in a folder of this chat",
    "undo": "undo the last turn and its changes to files",
    "sessions": "list the saved conversations of this folder, and go on with one",
    "approve": "answer a question: /approve ID yes, no or always",
}
#: What runs without any question; a stolen phone is not to switch that on.
NOT_IN_CHATS: Final = frozenset(("bypass",))
#: Commands of a session that a menu's buttons may send.
_OF_SESSIONS: Final = frozenset(("model", "provider", "mode", "undo", "sessions", "resume"))
_MOST_BUTTONS: Final = 20
_OWN_FOLDER: Final = "none"
_ONLY_OWNER: Final = "Only the owner of this assistant may use /{}."


class _Offered(Struct, frozen=True, eq=False):
    """A menu that was shown, whose buttons send its lines."""

    key: str
    menu: Menu


def command_in(text: str) -> tuple[str, str]:
    """Return the name of a command and what stands behind it; "" where the text is none, as `/etc/hosts` is not."""
    word, argument = [*text.split(maxsplit=1), "", ""][:2]
    name = word[1:].partition("@")[0].lower()
    is_command = word.startswith("/") and name.isascii() and name.replace("_", "").isalnum()
    return (name, argument.strip()) if is_command else ("", "")


class ChatCommands:
    """Carries commands out and answers them."""

    def __init__(
        self, asking: ChatQuestions, budget: DailyBudget, chats: "Chats", turns: "Turns"
    ) -> None:
        self._asking, self._budget, self._chats, self._turns = asking, budget, chats, turns
        self._outbox, self._buttons = asking.outbox, asking.buttons

    async def run(
        self, incoming: Incoming, key: str, name: str, argument: str, *, is_owner: bool
    ) -> None:
        """Carry a command out and post its answer."""
        if name == "start":  # what Telegram has people send first
            name = "help"
        if name not in (*FOR_ALL, *FOR_OWNERS):
            await self.say(incoming, f"There is no command /{plain(name[:40])}. /help lists them.")
        elif name in FOR_OWNERS and not is_owner:
            await self.say(incoming, _ONLY_OWNER.format(name))
        else:
            await self._tried(incoming, key, name, argument, is_owner=is_owner)

    async def _tried(
        self, incoming: Incoming, key: str, name: str, argument: str, *, is_owner: bool = True
    ) -> None:
        try:
            await self._carry_out(incoming, key, name, argument, is_owner=is_owner)
        except YbsError as error:
            await self.say(incoming, told(error))

    async def _carry_out(
        self, incoming: Incoming, key: str, name: str, argument: str, *, is_owner: bool
    ) -> None:
        match name:
            case "help":
                known = {**FOR_ALL, **(FOR_OWNERS if is_owner else {})}
                lines = [f"- /{name} {what}" for name, what in known.items()]
                first = "Write what you want done. Files and pictures may come with it."
                await self.say(incoming, "\n".join([first, "", *lines]))
            case "new":
                await self._turns.stop(key)
                await self._chats.begin_anew(key)
                await self.say(incoming, "A new conversation begins with your next message.")
            case "stop":
                was_running = await self._turns.stop(key)
                await self.say(incoming, "Stopped." if was_running else "Nothing is running here.")
            case "status" if not is_owner:
                status = (await self._chats.session(key)).status()
                runs = "A turn" if self._turns.running(key) else "Nothing"
                words = (
                    f"Model: {plain(status.shown_model)}. Mode: {status.mode}. {runs} is running."
                )
                await self.say(incoming, words)
            case "project":
                await self._project(incoming, key, argument)
            case "approve":
                await self.say(incoming, await self._asking.approve(incoming, argument))
            case _:
                await self._of_session(incoming, key, f"/{name} {argument}".strip())

    async def say(
        self, incoming: Incoming, text: str, buttons: tuple[tuple[Button], ...] = ()
    ) -> None:
        """Answer a message; the same message is answered once."""
        if text:
            await self._outbox.post(
                incoming.place, text, id=f"{incoming.id}:reply", buttons=buttons
            )

    async def chosen(
        self, offered: Any, number: int, incoming: Incoming, *, is_owner: bool
    ) -> None:
        """Take the button of a menu: it sends its line, once."""
        if not is_owner:
            await self.say(incoming, "Only the owner of this assistant may choose here.")
            return
        self._buttons.withdraw(offered)
        await self._tried(incoming, offered.key, *command_in(offered.menu.items[number].line))

    async def _project(self, incoming: Incoming, key: str, argument: str) -> None:
        if not argument:
            names = [*await self._chats.projects(), _OWN_FOLDER]
            items = tuple(MenuItem(f"/project {each}", each) for each in names)
            menu = Menu(f"Projects ({_OWN_FOLDER}: a folder of this chat)", items)
            await self._offer(incoming, key, Reply(menu=menu))
            return
        if self._turns.running(key):
            raise YbsError("A turn is running: /stop ends it.")
        await self._chats.bind(key, "" if argument == _OWN_FOLDER else argument)
        where = "its own folder" if argument == _OWN_FOLDER else plain(argument)
        await self.say(incoming, f"This chat works in {where} now.")

    async def _of_session(self, incoming: Incoming, key: str, line: str) -> None:
        """Have the session carry a command out. Raises YbsError."""
        name, argument = command_in(line)
        if name == "mode" and argument and not _is_mode_of_chats(argument):
            raise YbsError("There is no such mode in a chat; /mode lists those that there are.")
        session = await self._chats.session(key)
        if session.commands is None:
            raise YbsError("This session has no commands.")
        before = _noted(session)
        reply = (await session.commands.run(session, line)).without_terminal(line)
        if changed := dict(_noted(session).items() - before.items()):
            await self._chats.noted(key, **changed)
        await self._offer(incoming, key, reply, name=name)

    async def _offer(self, incoming: Incoming, key: str, reply: Reply, name: str = "") -> None:
        """Post a reply; where it has a menu, its first items are buttons."""
        menu = reply.menu
        if menu is None:
            if name == "status" and (left := await self._budget.left()) is not None:
                note = f"Left to spend today: ${max(0.0, left):.2f}"
                reply = replace(reply, notes=(*reply.notes, note))
            await self.say(incoming, markdown_of(reply) or "Done.")
            return
        items = tuple(each for each in menu.items if _may_be_sent(each.line))[:_MOST_BUTTONS]
        labels = [_label(each) for each in items]
        offered = _Offered(key, replace(menu, items=items))
        buttons = self._buttons.show(offered, incoming.place, labels)
        await self.say(incoming, f"**{plain(menu.title)}**", buttons)


def _noted(session: "Session") -> dict[str, str]:
    return {"session": session.journal.name, "mode": session.mode}


def _label(item: MenuItem) -> str:
    sign = "✓ " if item.is_current else ""
    return f"{sign}{item.label}{f': {item.detail}' if item.detail else ''}"


def _is_mode_of_chats(argument: str) -> bool:
    """Return whether a word is a mode: not the number of one, and none that chats do not have."""
    word = " ".join(argument.lower().split())
    return word in MODE_WORDS and word not in NOT_IN_CHATS


def _may_be_sent(line: str) -> bool:
    name, argument = command_in(line)
    return name in (*_OF_SESSIONS, "project") and (name != "mode" or _is_mode_of_chats(argument))
