"""The addresses of the page: what it reads, and what it may ask for. All of it but the page itself needs a login; see `gate.py`."""

import asyncio
import hmac
import mimetypes
from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ybs.commands.advice import told
from ybs.commands.registry import command_at, commands_of
from ybs.core.decoding import from_json
from ybs.core.errors import YbsError
from ybs.core.messages import Image
from ybs.frontends.markdown import fenced
from ybs.frontends.terminal.prompt.file_index import FileIndex
from ybs.frontends.web.access import LOGIN_SECONDS, Login, Password, TooManyTries, WebLogins
from ybs.frontends.web.drawing import PICTURES, Record
from ybs.frontends.web.following import Followed, PageLine, Tab, back_of
from ybs.frontends.web.gate import NOT_LOGGED_IN, PageAddress, TooMuchSent, address_of
from ybs.frontends.web.pages import Pages, Role
from ybs.security.paths.names import shown_name
from ybs.security.unicode import printable
from ybs.session.mentions import mention_of, open_mention
from ybs.session.questions import choices_of, in_words
from ybs.session.session import Session
from ybs.tools.workspace import Workspace

MOST_ITEMS: Final = 12
#: How long the first look at the disk is waited for.
_FIRST_SECONDS: Final = 0.4


class Completions:
    """Offers what fits; keeps an index of the files of each session that was asked about."""

    def __init__(self) -> None:
        self._indexes: WeakKeyDictionary[Workspace, FileIndex] = WeakKeyDictionary()

    async def of(self, session: Session, text: str) -> Sequence[Record]:
        """Return what may take the place of the last `cut` characters of a text."""
        if text.startswith("/") and "\n" not in text:
            return list(_commands(session, text))[:MOST_ITEMS]
        found = open_mention(text.rpartition("\n")[2])
        if found is None:
            return []
        query, length = found
        workspace = session.environment.workspace
        if workspace not in self._indexes:
            self._indexes[workspace] = FileIndex(workspace.roots, workspace.reads.recent)
        index = self._indexes[workspace]
        index.refresh()
        if not index.find("", 1):
            await index.settle(_FIRST_SECONDS)
        files = (_file(path, length) for path in index.find(query, MOST_ITEMS))
        return [each for each in files if each["text"].strip()]


def _file(path: str, length: int) -> Record:
    mention = mention_of(shown_name(path))
    is_folder = path.endswith("/")
    text = mention.removesuffix('"') if is_folder else f"{mention} "
    return {"text": text, "cut": length, "label": printable(shown_name(path)), "detail": ""}


def _commands(session: Session, text: str) -> Iterator[Record]:
    name, space, argument = text[1:].partition(" ")
    if not space:
        typed = name.lower()
        fitting = [each for each in commands_of(session) if any(typed in n for n in each.names)]
        for command in sorted(fitting, key=lambda each: _rank(each.names, typed)):
            shown = f"/{command.names[0]}"
            label = f"{shown} {command.arguments}".rstrip()
            end = " " if command.arguments else ""
            yield {"text": shown + end, "cut": len(text), "label": label, "detail": command.summary}
        return
    command = command_at(f"/{name}", session)
    for choice in command.choices(session) if command and command.choices else ():
        if argument.lower() in choice.lower() and choice != argument:
            yield {"text": choice, "cut": len(argument), "label": printable(choice), "detail": ""}


def _rank(names: Sequence[str], typed: str) -> int:
    return 0 if typed in names else 1 if names[0].startswith(typed) else 2


_FILES: Final = StaticFiles(directory=Path(__file__).parent / "static")
mimetypes.add_type("text/javascript", ".js")  # before Python 3.12 it is another one
#: A line goes to idle tabs this often, so that both sides know the other is there.
BEAT_SECONDS: Final = 15.0
#: Pictures and files that go with a message, and bytes and characters of each.
MOST_ATTACHED, MOST_PICTURE, MOST_FILE = 10, 6_000_000, 200_000
_T = TypeVar("_T")


class Enter(Struct, frozen=True):
    """What logs a browser in: the key of a link, or the password."""

    key: str = ""
    password: str = ""


class _Opening(Struct, frozen=True):
    """Which session to open: a new one in a folder, or a saved one by its name."""

    folder: str = ""
    resume: str = ""
    fork: bool = False
    incognito: bool = False


class Picture(Struct, frozen=True):
    """A picture, its bytes in base64."""

    type: str
    data: bytes


class File(Struct, frozen=True):
    """A file of text."""

    name: str
    text: str


class _Typed(Struct, frozen=True):
    """A line from a page, and what goes with it. `ref` names the answer; `queue`: it waits for the end of the turn.

    `given`: the words that a way back had put into the prompt, before this server began perhaps.
    """

    text: str
    tab: str = ""
    ref: str = ""
    given: str = ""
    queue: bool = False
    choice: bool = False
    pictures: tuple[Picture, ...] = ()
    files: tuple[File, ...] = ()


class _Answered(Struct):
    """The answer to a question: its key, and the words for one that takes words."""

    question: str
    key: str
    reason: str = ""
    with_network: bool = False


class Paired(Struct, frozen=True):
    """As whom the person with this code may speak in a chat."""

    code: str
    role: Role


class Api:
    """The functions behind the addresses."""

    def __init__(
        self, pages: Pages, access: WebLogins, password: Password, place: PageAddress
    ) -> None:
        self._pages, self._access, self._password, self._place = pages, access, password, place
        self._checking = asyncio.Lock()
        self._completions = Completions()

    def app(self) -> Starlette:
        """Return the application, without what stands before it."""
        one = "/api/sessions/{id}"
        routes = [
            Route("/", self.page),
            Mount("/static", _FILES),
            Route("/api/enter", self.enter, methods=["POST"]),
            Route("/api/proof", self.proof),
            Route("/api/leave", self.leave, methods=["POST"]),
            Route("/api/links", self.link, methods=["POST"]),
            Route("/api/logins", self.logins),
            Route("/api/logins/{id}/end", self.end_login, methods=["POST"]),
            Route("/api/board", self.board),
            Route("/api/learned", self.learned, methods=["POST"]),
            Route("/api/pair", self.pair, methods=["POST"]),
            Route("/api/search", self.search_all),
            Route("/api/stream", self.stream),
            Route("/api/sessions", self.sessions),
            Route("/api/sessions", self.open, methods=["POST"]),
            Route(f"{one}/stream", self.stream),
            Route(f"{one}/events", self.events),
            Route(f"{one}/complete", self.complete),
            Route(f"{one}/search", self.search),
            Route(f"{one}/jobs", self.jobs),
            Route(f"{one}/pictures/{{place}}/{{number}}", self.picture),
            Route(f"{one}/lines", self.line, methods=["POST"]),
            Route(f"{one}/answer", self.answer, methods=["POST"]),
            Route(f"{one}/stop", self.stop, methods=["POST"]),
            Route(f"{one}/recall", self.recall, methods=["POST"]),
            Route(f"{one}/close", self.close, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={YbsError: _failed, OSError: _failed})  # pyright: ignore[reportArgumentType] - handlers of their own kinds

    # The page

    async def page(self, request: Request) -> Response:
        """Return the page, which holds nothing that is anybody's. Where nobody is logged in, and others may have had the port, the browser forgets what they left."""
        page = await _FILES.get_response("index.html", request.scope)
        if not self._place.is_secure and self._known(request) is None:
            page.headers["clear-site-data"] = '"cache", "storage"'
            page.headers["cache-control"] = "no-store"
        return page

    def _known(self, request: Request) -> Login | None:
        """Return the login whose cookie this is, which alone lets nobody in."""
        cookie = request.cookies.get(self._place.cookie, "")
        return self._access.of(cookie, self._place.origin_of(request.headers))

    # Logging in and out

    async def enter(self, request: Request) -> Response:
        """Log a browser in by a link or the password."""
        given = await _body(request, Enter)
        address = address_of(request.scope, has_proxy=self._place.has_proxy)
        if (
            given.key
        ):  # nobody guesses 256 bits, and others on this machine shall not lock the person out
            if not self._access.take_link(given.key):
                return _json({"error": "This link was used, or is too old."}, 401)
        elif not await self._knows(given.password, address):
            return _json({"error": "This is not the password."}, 401)
        origin = self._place.origin_of(request.headers)
        secrets = self._access.begin(request.headers.get("user-agent", ""), address, origin)
        response = _json({"token": secrets.token})
        response.set_cookie(
            self._place.cookie,
            secrets.cookie,
            max_age=int(LOGIN_SECONDS),
            httponly=True,
            samesite="strict",
            secure=self._place.is_secure,
            path="/",
        )
        return response

    async def _knows(self, password: str, address: str) -> bool:
        """Return whether this is the password. Raises TooManyTries."""
        async with (
            self._checking
        ):  # one at a time: each takes 32 MB, and is counted before the next
            self._access.tries.check(address)
            is_right = await asyncio.to_thread(self._password.is_right, password)
            (self._access.tries.note_right if is_right else self._access.tries.note_wrong)(address)
            return is_right

    async def proof(self, request: Request) -> Response:
        """Show a page that this server knows its login, before the page tells it the token: others may take the port of one that ended.

        The proof is for the origin at which it is asked: who passes it on shows it to a page of another one.
        """
        if (login := self._known(request)) is None:
            return Response(NOT_LOGGED_IN, 401)
        nonce = request.query_params.get("nonce", "")[:100]
        said = f"{nonce} {login.origin}".encode()
        return Response(hmac.digest(login.token.encode(), said, "sha256").hex())

    async def leave(self, request: Request) -> Response:
        """Log this browser out."""
        login = _login(request)
        self._access.end(login.id)
        self._pages.end_tabs(login.id)
        response = _json({})
        response.delete_cookie(
            self._place.cookie, path="/", secure=self._place.is_secure, httponly=True
        )
        return response

    async def link(self, request: Request) -> Response:
        """Make a link for another browser."""
        del request
        return _json({"link": link_to(self._place, self._access)})

    async def logins(self, request: Request) -> Response:
        """List the browsers that are logged in."""
        own = _login(request).id
        rows = [
            {"id": each.id, "browser": each.browser, "address": each.address}
            | {"begun": each.begun_at, "seen": each.seen_at, "own": each.id == own}
            for each in self._access.logins
        ]
        return _json({"logins": rows})

    async def end_login(self, request: Request) -> Response:
        """Log another browser out."""
        name = request.path_params["id"]
        self._pages.end_tabs(name)
        return _json({"ended": self._access.end(name)})

    # Sessions

    async def sessions(self, request: Request) -> Response:
        """List the open and the saved sessions, and the projects that a new one may be opened in."""
        saved, projects = await asyncio.to_thread(
            lambda: (self._pages.listed(), self._pages.projects())
        )
        shown = [[each, self._pages.options.host.short(each)] for each in projects]
        opened = self._pages.opened_by(_login(request).id)
        self._pages.ledger.read_soon(self._pages.saved.store)
        return _json({"open": opened, "saved": saved, "projects": shown})

    async def open(self, request: Request) -> Response:
        """Open a session."""
        given = await _body(request, _Opening)
        followed = await self._pages.open(
            _login(request).id,
            folder=given.folder,
            resume=given.resume,
            is_fork=given.fork,
            is_incognito=given.incognito,
        )
        return _json({"id": followed.session.id})

    async def stream(self, request: Request) -> Response:
        """Send a tab the list of sessions and, of the one it shows, what it lacks and what comes."""
        login = _login(request).id
        followed = self._found(request) if "id" in request.path_params else None
        tab = Tab(request.query_params.get("tab", "")[:40], login)
        after = _number(request.query_params.get("after", ""))
        self._pages.add(tab)

        async def lines() -> AsyncGenerator[bytes]:
            try:
                if followed is not None:
                    followed.connect(tab, after)
                while not tab.is_over:
                    yield await tab.take(BEAT_SECONDS)
            finally:
                self._pages.leave(tab)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def events(self, request: Request) -> Response:
        """Return what was before a place."""
        before = _number(request.query_params.get("before", "")) or 0
        first, records = self._found(request).window(before)
        joined = b",".join(each.rstrip(b"\n") for each in records)
        return _raw(b'{"first":%d,"records":[%s]}' % (first, joined))

    async def complete(self, request: Request) -> Response:
        """Return what may stand at the end of a line that is being typed."""
        text = request.query_params.get("text", "")[-500:]
        followed = self._found(request)
        items = list(await self._completions.of(followed.session, text))
        return _json({"items": followed.clean(items)})

    async def search(self, request: Request) -> Response:
        """Return where words stand in a session."""
        return _json({"hits": self._found(request).find(request.query_params.get("q", "")[:200])})

    async def search_all(self, request: Request) -> Response:
        """Return where words stand in the saved sessions."""
        saved, words = self._pages.saved, request.query_params.get("q", "")[:200]
        hits = await asyncio.to_thread(lambda: saved.store.search(words, clean=saved.firewall.mask))
        rows = [
            {"name": hit.saved.name, "title": printable(saved.cleaned(hit.saved).title)}
            | {"excerpt": printable(hit.excerpt), "at": hit.saved.changed_at}
            for hit in hits
        ]
        return _json({"hits": rows})

    async def jobs(self, request: Request) -> Response:
        """Return the background commands, and what each has printed that nobody has read."""
        followed = self._found(request)
        rows = [
            {"name": job.name, "line": printable(job.line), "running": job.ended is None}
            | {"output": printable(job.output.recent)}
            for job in followed.session.environment.workspace.shells.jobs.all
        ]
        return _json({"jobs": followed.clean(rows)})

    async def picture(self, request: Request) -> Response:
        """Return a picture of the conversation."""
        place, number = (_number(request.path_params[each]) or 0 for each in ("place", "number"))
        image = self._found(request).picture(place, number)
        if image is None or image.media_type not in PICTURES:
            return Response("There is no such picture.", 404)
        headers = {"content-disposition": "inline", "content-security-policy": "sandbox"}
        return Response(image.data, media_type=image.media_type, headers=headers)

    async def line(self, request: Request) -> Response:
        """Take a line: words, a command, or what was chosen from a menu."""
        given = await _body(request, _Typed)
        followed = self._found(request)
        images = tuple(_image(each) for each in given.pictures)
        if len(given.files) + len(images) > MOST_ATTACHED:
            raise YbsError(f"At most {MOST_ATTACHED} files and pictures go with a message.")
        attached = "".join(map(_attached, given.files))
        followed.sent_from(given.tab)
        if given.given:
            followed.session.parts.composer.note_given_back(given.given)
        sent = PageLine(
            text=given.text + attached,
            sender=followed,
            typed=given.text if attached else None,
            images=images,
            is_choice=given.choice,
            is_for_model=bool(images or attached),
            tab=given.tab[:40],
            ref=given.ref[:40],
        )
        inbox = followed.session.inbox
        (inbox.queue if given.queue else inbox.submit)(sent)
        return _json({})

    async def answer(self, request: Request) -> Response:
        """Answer a question; it says whether the question was still open."""
        given = await _body(request, _Answered)
        questions = self._found(request).session.questions
        asked = next((each for each in questions.open if each.id == given.question), None)
        if asked is None:
            return _json({"counted": False})
        offered = choices_of(asked, with_network=given.with_network and asked.offers_network)
        if given.key not in offered:
            raise YbsError("This question does not offer that.")
        chosen = offered[given.key]
        answer = in_words(asked, given.reason) if chosen.wants_words else chosen.answer
        return _json({"counted": questions.answer(given.question, answer)})

    async def stop(self, request: Request) -> Response:
        """Stop the running turn or command."""
        self._found(request).session.inbox.stop()
        return _json({})

    async def recall(self, request: Request) -> Response:
        """Take the newest line that waits back."""
        line = self._found(request).session.inbox.recall()
        return _json(back_of([line] if line is not None else []))

    async def close(self, request: Request) -> Response:
        """End a session."""
        await self._pages.close(self._found(request))
        return _json({})

    async def board(self, request: Request) -> Response:
        """Return the figures of the board."""
        return _json(await self._pages.board(_login(request).id, len(self._access.logins)))

    async def learned(self, request: Request) -> Response:
        """Show, accept or dismiss a task that recurs."""
        return _json(await self._pages.learned((await _body(request, _Typed)).text))

    async def pair(self, request: Request) -> Response:
        """Let somebody speak in a chat, or refuse them."""
        paired = await _body(request, Paired)
        if self._pages.chats is None:
            raise YbsError("No chats are served here.")
        await self._pages.chats.pair(paired.code, paired.role)
        return _json({})

    def _found(self, request: Request) -> Followed:
        return self._pages.find(request.path_params["id"], _login(request).id)


def link_to(place: PageAddress, access: WebLogins) -> str:
    """Return a link that logs one browser in. Its key stands behind a #, so that no server, log or referrer is told it."""
    return f"{place.origins[0]}/#key={quote(access.new_link())}"


def _login(request: Request) -> Login:
    return request.state.login


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None


def _image(picture: Picture) -> Image:
    if picture.type not in PICTURES:
        raise YbsError("Only PNG, JPEG, GIF and WebP pictures can be attached.")
    if len(picture.data) > MOST_PICTURE:
        raise YbsError(f"A picture has at most {MOST_PICTURE // 1_000_000} MB.")
    return Image(media_type=picture.type, data=picture.data)


def _attached(file: File) -> str:
    """Return a file as it stands behind the words that it goes with."""
    if len(file.text) > MOST_FILE:
        raise YbsError(
            f"{file.name[:80]} has more than {MOST_FILE:,} characters. Name it with @ instead."
        )
    name = " ".join(printable(file.name).split())[:200]
    return f"\n\nFile {name}:\n{fenced(file.text)}"


async def _body(request: Request, kind: type[_T]) -> _T:
    """Return what a request says. Raises YbsError where that is not what is expected."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise YbsError("A request has a JSON body.")
    try:
        return from_json(await request.body(), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise YbsError(f"The request is not understood: {error}") from error


def _json(value: Any, status: int = 200) -> Response:
    return _raw(msgspec.json.encode(value), status)


def _raw(data: bytes, status: int = 200) -> Response:
    return Response(data, status, media_type="application/json")


async def _failed(request: Request, error: Exception) -> Response:
    """Answer a request that failed for a reason that the person can read."""
    del request
    if isinstance(error, TooManyTries):
        response = _json({"error": str(error)}, 429)
        response.headers["retry-after"] = str(max(1, round(error.seconds)))
        return response
    if isinstance(error, TooMuchSent):
        return _json({"error": str(error)}, 413)
    said: Record = {"error": printable(told(error) if isinstance(error, YbsError) else str(error))}
    if isinstance(error, YbsError):
        said["copy"] = any(each.kind == "fork_session" for each in error.remedies)
    return _json(said, 400)
