"""The protocol of `ybs serve`: JSON-RPC 2.0, a message a line. `ybs serve --schema` prints all of it, made from these records.

A client says `hello` first, with the version that it speaks. Requests are answered in their order, but for `send`, which is answered when it
is known what came of the line. The server tells a client of the sessions that it subscribed to, in the order in which things happen there.
"""

from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from ybs.config.schema import Mode
from ybs.core.wording import listed
from ybs.session.options import SETTINGS, BadOption, Options
from ybs.session.own_commands import OwnRun
from ybs.session.reply import Menu, Outcome, Table, TerminalActions
from ybs.session.status import Status
from ybs.transcripts.schema import event_schema, schema_of

VERSION: Final = 1
#: A longer line is not read; before `hello` much less is.
MOST_BYTES: Final = 16_000_000
MOST_HELLO_BYTES: Final = 65_536

PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
FAILED, WRONG_VERSION, NOT_GREETED, TOO_MANY = -32000, -32001, -32002, -32003
ERRORS: Final = {
    PARSE_ERROR: "the line is not JSON",
    INVALID_REQUEST: "the line is not a request of JSON-RPC 2.0, or longer than a line may be",
    UNKNOWN_METHOD: "there is no such method",
    INVALID_PARAMS: "the params do not fit the method",
    FAILED: "ybs could not do it; the message says why",
    WRONG_VERSION: "the server speaks another version; `data` has `versions`",
    NOT_GREETED: "the first message was not a valid `hello`; the connection ends",
    TOO_MANY: "too many requests of this connection wait for their answers",
}

RequestId: TypeAlias = int | str | None
#: What a session does: a turn or a command, wait for an answer, nothing after some or any work; or it is on disk alone.
Doing: TypeAlias = Literal["working", "asks", "done", "new", "saved"]


class RpcRequest(Struct, frozen=True):
    """A message of a client. One without `id` is not answered."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Raw = Raw(b"{}")
    id: RequestId | UnsetType = UNSET


class _Params(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a method takes."""


class Hello(_Params, frozen=True):
    """Say who speaks. `token` is needed over TCP, and at a socket outside of ybs's own folder."""

    version: int
    client: str = ""
    token: str = ""


class Opening(_Params, frozen=True):
    """How a session is opened, as the options of the command line say it. `environ`: the variables for it; else the server's own."""

    folder: str
    mode: Mode | None = None
    provider: str | None = None
    model: str | None = None
    endpoint: str | None = None
    profile: str | None = None
    max_turns: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    incognito: bool = False
    trust: bool = False
    sandbox: bool = True
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dirs: tuple[str, ...] = ()
    environ: dict[str, str] = {}

    def beyond(self, other: "Opening") -> list[str]:
        """Return what this one says of a session, beside its place and its variables, and another one does not say."""
        bare, found = Opening(folder=self.folder, environ=self.environ), list[str]()
        for name in Opening.__struct_fields__:
            said, there, usual = (getattr(each, name) for each in (self, other, bare))
            is_there = set(said) <= set(there) if isinstance(usual, tuple) else said == there
            if not is_there and said != usual:
                found.append(name)
        return found


class Resuming(Opening, frozen=True):
    """Which saved session goes on: its name, its number in `ybs sessions` or the beginning of its title; "": the newest of the folder."""

    name: str = ""


class SessionQuery(_Params, frozen=True):
    """`saved`: list those on disk that are not open, too, of the `folder` or of all."""

    saved: bool = False
    folder: str = ""


class InSession(_Params, frozen=True):
    """The session: its id, its name, or the beginning of its title."""

    session: str


class Sending(InSession, frozen=True):
    """A line, as if typed: a /command, a !command, or words for the model, which steer a turn that runs.

    `is_for_model`: words, whatever they begin with. `waits`: it waits for the end of the turn. `typed`: the part in which named files are
    looked for. `is_choice`: it was picked from a menu. `ran`: the last command of the person's own shell, which /share is about.
    """

    text: str
    is_for_model: bool = False
    waits: bool = False
    typed: str | None = None
    is_choice: bool = False
    ran: OwnRun | None = None


class Keeping(InSession, frozen=True):
    """A text that the person has typed and that is not sent."""

    text: str


class SteeringWords(InSession, frozen=True):
    """Words for the running turn."""

    text: str


class Answering(InSession, frozen=True):
    """The answer to a question by its id, which a `state` event names. `reason`: why not, or the answer to the model's own question."""

    question: str
    is_allowed: bool
    is_for_session: bool = False
    is_for_project: bool = False
    with_network: bool = False
    is_outside: bool = False
    asks_edits: bool = False
    reason: str = ""


class ModeChange(InSession, frozen=True):
    """The mode from now on."""

    mode: Mode


class Subscribing(InSession, frozen=True):
    """Hear of all events behind the number `after`, and of those to come; with `lines` of the lines that are sent, too."""

    after: int = 0
    lines: bool = False


class Greeting(Struct, frozen=True, kw_only=True):
    """Who answers."""

    version: int
    ybs: str
    pid: int


class SessionEntry(Struct, frozen=True, kw_only=True):
    """A session: `session` is its id while it is open, `number` that of its last event, `clients` how many are subscribed."""

    session: str = ""
    name: str
    title: str
    folder: str
    doing: Doing
    provider: str
    model: str
    mode: str = ""
    number: int = 0
    clients: int = 0


class ReplyTold(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command answered: text, tables below it and notes below those; what it says to draw again are lines that tell events.

    `terminal` is for a client that hears of lines, as a terminal does; any other one is told in words what needs a terminal.
    """

    text: str = ""
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    is_error: bool = False
    menu: Menu | None = None
    is_listed: bool = False
    diff: str = ""
    events: tuple[Raw, ...] = ()
    terminal: TerminalActions = TerminalActions()


class Sent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of a line: a turn, a command's reply, or nothing: the running turn read it, or it was given back unread."""

    outcome: Outcome | None = None
    reply: ReplyTold | None = None
    was_read: bool = False
    was_returned: bool = False


class Done(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether there was something to do; `text` is the line that was taken back."""

    done: bool
    text: str = ""


class Kept(Struct, frozen=True, kw_only=True):
    """How a text may be written down outside of the session: without secrets; null: not at all, the session is incognito."""

    text: str | None


class CommandFacts(Struct, frozen=True, kw_only=True):
    """A slash command: `choices` are what its argument may be, where that is known."""

    names: tuple[str, ...]
    arguments: str
    summary: str
    choices: tuple[str, ...] = ()


class Subscribed(Struct, frozen=True, kw_only=True):
    """The session's id, and the number of its last event. What a saved session goes on from stands in `earlier`, to be drawn first."""

    session: str
    number: int
    earlier: ReplyTold | None = None


class EventTold(Struct, frozen=True, kw_only=True):
    """Something happened: the line says what, as in docs/events.schema.json."""

    session: str
    number: int
    line: Raw


class LineTold(Struct, frozen=True, kw_only=True):
    """A line is taken, the running turn has read it, or nobody has and it goes back; `request` brought it, where it is of this client.

    `answered`: it was a command of another client, which was told the `reply` as the answer to its request. `kept`, of one that is taken or read:
    how its typed part may be written down outside of the session, without secrets; null: not at all, the session is incognito.
    """

    session: str
    text: str
    what: Literal["taken", "read", "returned", "answered"]
    request: RequestId = None
    reply: ReplyTold | None = None
    kept: str | None = None


class InboxTold(Struct, frozen=True, kw_only=True):
    """What waits: `now` is worked on, `steering` waits for the turn's next step, `queued` for its end; `beside` runs beside it."""

    session: str
    now: str | None
    steering: tuple[str, ...]
    queued: tuple[str, ...]
    beside: tuple[str, ...]


class TellingEnded(Struct, frozen=True, kw_only=True):
    """No more is told: a session was closed, or (`session` is empty) the connection ends. `number` is that of the last event told."""

    session: str
    number: int
    message: str


#: Each method: what it takes, what it answers, and what it does.
METHODS: Final[dict[str, tuple[type[Struct], Any, str]]] = {
    "hello": (Hello, Greeting, "Begin: the first message of every connection."),
    "open": (Opening, SessionEntry, "Open a new session."),
    "resume": (Resuming, SessionEntry, "Go on with a saved session, or share it while it is open."),
    "fork": (Resuming, SessionEntry, "Go on with a copy of a saved session."),
    "list": (SessionQuery, tuple[SessionEntry, ...], "List the sessions."),
    "close": (InSession, Done, "Close a session: its turn ends, it stays saved."),
    "send": (Sending, Sent, "Send a line, and hear what came of it."),
    "kept": (Keeping, Kept, "Say how a text that is not sent may be written down."),
    "steer": (SteeringWords, Done, "Give words to the running turn, if there is one."),
    "take_back": (InSession, Done, "Take back the newest line that waits."),
    "cancel": (InSession, Done, "Stop the running turn or command."),
    "answer": (Answering, Done, "Answer a question, if nobody else has."),
    "set_mode": (ModeChange, Done, "Change what needs no question."),
    "status": (InSession, Status, "Say where the session stands, with figures."),
    "commands": (InSession, tuple[CommandFacts, ...], "List the slash commands."),
    "subscribe": (Subscribing, Subscribed, "Hear what happens in a session."),
    "unsubscribe": (InSession, Done, "Hear no more of it."),
    "acp": (
        Opening,
        Done,
        "Speak the Agent Client Protocol instead of this one from the answer on, with these options for the sessions that it opens.",
    ),
}
#: What the server tells by itself.
NOTIFICATIONS: Final[dict[str, type[Struct]]] = {
    "event": EventTold,
    "line": LineTold,
    "inbox": InboxTold,
    "ended": TellingEnded,
}


#: Options of the command line that are about this process and its terminal, wherever the session is.
_OF_PROCESS: Final = frozenset(("host", "overrides", "before_incognito", "plain"))


def for_server(options: Options, kind: type[Opening] = Opening, **more: Any) -> Any:
    """Return what opens a session with these options of the command line in a server.

    Raises BadOption for those that a server is not told, as the session would not go by them: whatever is neither a field of
    `Opening` nor in `_OF_PROCESS`.
    """
    bare, short = Options(host=options.host, folder=options.folder), _short_overrides(options)
    names = Options.__struct_fields__
    given = {*short, *(name for name in names if getattr(options, name) != getattr(bare, name))}
    if lost := sorted(given.difference(Opening.__struct_fields__, _OF_PROCESS)):
        named = [f"--{name.replace('_', '-').replace('config-file', 'config')}" for name in lost]
        raise BadOption(
            f"{listed(named)} cannot be used for a session of the server (`ybs serve`), which would not go by it. "
            "Begin the session with `ybs` alone, or say it in your settings or a profile."
        )
    return opening_of(options, kind, **more)


def opening_of(options: Options, kind: type[Opening] = Opening, **more: Any) -> Any:
    """Return what opens a session with these options again, as far as `Opening` can say them."""
    fields = Opening.__struct_fields__
    given = {name: value for name, value in _short_overrides(options).items() if name in fields}
    shared = {name: getattr(options, name) for name in ("profile", "sandbox", "allow", "deny")}
    return kind(
        folder=str(options.folder.absolute()),
        add_dirs=tuple(str(each.absolute()) for each in options.add_dirs),
        environ=dict(options.host.environ),
        trust=options.trust is not None,
        **given,
        **shared,
        **more,
    )


def _short_overrides(options: Options) -> dict[str, Any]:
    """Return the settings that options say by the short names that they have."""
    names = {key: name for name, key in SETTINGS.items()}
    return {
        names.get(key, key): each for key, each in options.overrides.items() if each is not None
    }


def protocol_schema() -> dict[str, Any]:
    """Return the JSON Schema of all messages: `methods` and `notifications` by name, the lines of events in `$defs`."""
    events = event_schema()
    found: dict[str, Any] = events.pop("$defs")
    methods: dict[str, Any] = {}
    for name, (params, result, words) in METHODS.items():
        forms = {"params": schema_of(params, found), "result": schema_of(result, found)}
        methods[name] = {"description": words, **forms}
    told = {name: {"params": schema_of(each, found)} for name, each in NOTIFICATIONS.items()}
    found["EventLine"] = {key: value for key, value in events.items() if key != "$schema"}
    found["EventTold"]["properties"]["line"] = {"$ref": "#/$defs/EventLine"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The protocol of ybs serve: JSON-RPC 2.0, a message a line",
        "version": VERSION,
        "methods": methods,
        "notifications": told,
        "errors": {str(code): words for code, words in ERRORS.items()},
        "$defs": dict(sorted(found.items())),
    }
