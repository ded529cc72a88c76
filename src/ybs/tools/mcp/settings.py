"""The entries of `mcpServers`: what starts or reaches a server, and what it is given. Other agents' spellings are understood."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ybs.config.addresses import is_loopback, parts_of
from ybs.config.report import mask_address, mask_words
from ybs.config.tree import is_list, is_object
from ybs.config.variables import (
    Unset,
    has_reference,
    project_variables,
    replace_references,
    variables_in,
)
from ybs.core.cutting import shortened
from ybs.core.decoding import decodable
from ybs.security.firewall.checks import is_random
from ybs.security.firewall.vault import own_secrets
from ybs.security.own_programs import IN_PROJECT
from ybs.tools.mcp.listed import server_part
from ybs.trust.grants import ORIGIN_MARK
from ybs.trust.wording import texts_of

Transport: TypeAlias = Literal["stdio", "http"]
#: Headers that say where a call goes, or how it is framed.
_FRAMING: Final = ("host", "connection", "content-length", "transfer-encoding")
#: How other agents call the transports.
_TRANSPORTS: Final[Mapping[str, Transport]] = {
    "": "stdio",
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "http",
}
#: Programs that hand the server to a daemon, which no sandbox around them would hold.
CONTAINERS: Final = frozenset({"docker", "podman", "nerdctl"})
MOST_NAME: Final = 40
#: A day.
ASKING_SECONDS: Final = 86_400.0
#: Headers that hold a key whatever it looks like.
KEY_HEADERS: Final = ("authorization", "cookie")
#: Fields of a server that no entry sets.
_NOT_WRITTEN: Final = (
    "name",
    "is_projects",
    "is_editors",
    "root",
    "folder",
    "words",
    "written",
    "said",
)
_ELSEWHERE, _CONTAINER, _OPEN = "a server elsewhere", "a container", "no sandbox"
_GIVEN: Final[Mapping[str, str]] = {
    "": "only reads the project",
    _ELSEWHERE: "runs elsewhere",
    _CONTAINER: "runs in a container",
    _OPEN: "runs without a sandbox",
}


class BadServer(Exception):
    """An entry that cannot be used; the text says why."""


class OAuth(Struct, frozen=True, kw_only=True):
    """How the person is known to a server, where that server does not register clients by itself."""

    client_id: str = ""
    client_secret: str = ""
    scopes: str = ""
    #: The port on loopback to which the browser comes back; 0: any.
    port: int = field(default=0, name="callback_port")


class Server(Struct, frozen=True, kw_only=True):
    """One entry, as it stands in the settings and with the names of other agents.

    `read` and `write` are files and folders outside of the project. `replace_default` names built-in tools that its own stand in for.
    """

    name: str = ""
    type: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}
    oauth: OAuth = OAuth()
    enabled: bool = True
    disabled: bool = False
    sandbox: bool = True
    network: bool = True
    project: Literal["none", "read", "write"] = "read"
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = None
    replace_default: str | tuple[str, ...] | dict[str, str] = ()
    elicitation: bool = False
    shared: bool = True
    cwd: str = ""
    timeout_seconds: float = 60.0
    start_seconds: float = 30.0
    is_projects: bool = False
    #: An editor brought it; it may do no more than a project's.
    is_editors: bool = False
    #: The folder of the plugin that it is of.
    root: str = ""
    #: The folder of the project that it is used in.
    folder: str = ""
    #: Every text of a project's entry, as the trust in it was read from.
    words: tuple[str, ...] = ()
    #: The command of a project's entry and its arguments, before variables are replaced.
    written: tuple[str, ...] = ()
    #: Whose entry it is and what that starts or reaches, of a project's all of it, before variables are replaced: another one has another home.
    said: str = ""

    @property
    def plugin(self) -> str:
        """The name of the plugin that it is of."""
        return self.root.rpartition("/")[2]

    @property
    def transport(self) -> Transport:
        """How it is reached."""
        return "http" if self.url else "stdio"

    @property
    def is_sse(self) -> bool:
        """Whether it speaks the older transport, with a stream of events beside the messages; many addresses end in it."""
        path = self.url.partition("?")[0].rstrip("/")
        return self.type == "sse" or (not self.type and path.endswith("/sse"))

    @property
    def call_seconds(self) -> float:
        """How long a call may take: where the person may be asked in it, as long as they need."""
        return (
            max(self.timeout_seconds, ASKING_SECONDS) if self.elicitation else self.timeout_seconds
        )

    @property
    def starts_in(self) -> str:
        """Where it starts (`security/own_programs.py`): a project's own is there only once that is trusted."""
        return IN_PROJECT if self.is_projects else self.cwd

    @property
    def is_on(self) -> bool:
        """Whether it is used."""
        return self.enabled and not self.disabled

    @property
    def is_own(self) -> bool:
        """Whether it stands in the person's own settings."""
        return not (self.is_projects or self.is_editors or self.root)

    @property
    def is_container(self) -> bool:
        """Whether its command hands it to a daemon of containers, which only the person's own does; its program lies in no project."""
        folder, _, name = self.command.rpartition("/")
        return self.is_own and name in CONTAINERS and (not folder or folder[0] in "/~")

    @property
    def is_held(self) -> bool:
        """Whether its process runs in the sandbox."""
        return self.sandbox and not self.is_container

    @property
    def login(self) -> str:
        """The name under which the person's login is kept, for its address: theirs is not that of a project's, plugin's or editor's entry of the name."""
        return f"mcp:{self.name}" if self.is_own else f"mcp:{self.name}@{self.root or self.folder}"

    @property
    def has_key(self) -> bool:
        """Whether a key stands in its headers, in place of a login."""
        return any(name.lower() == "authorization" for name in self.headers)

    @property
    def secrets(self) -> list[str]:
        """What in its variables and headers is a secret by its name, once it is filled."""
        named = {name.replace("-", "_"): value for name, value in self.headers.items()}
        keys = [
            value.rpartition(" ")[2]
            for name, value in self.headers.items()
            if name.lower() in KEY_HEADERS
        ]
        shown = zip(self.args, mask_words(self.args), strict=True)
        hidden = [word.rpartition("=")[2] for word, masked in shown if masked != word]
        keys += [word for word in hidden if is_random(word.encode())]
        return own_secrets({**self.env, **named}, [*keys, self.oauth.client_secret])

    @property
    def shown(self) -> str:
        """Return one line that says what is started or reached, without keys that stand in it or what stands behind a `?`."""
        if not self.url:
            return " ".join([self.command, *mask_words(self.args)])
        return mask_address(self.url)

    @property
    def identity(self) -> str:
        """What an "always" for its tools stands for: what it is, and all that it is given, with keys by the names of their variables and headers alone."""
        env, headers = (
            sorted((name, variables_in(value)) for name, value in each.items())
            for each in (self.env, self.headers)
        )
        places = [self.project, self.network, self.read, self.write, self.sandbox, self.cwd]
        return str([self.said, env, headers, places])

    @property
    def needs(self) -> str:
        """Return in a few words what it is given beside reading the project."""
        if self.transport == "http":
            return _ELSEWHERE
        if not self.is_held:
            return _CONTAINER if self.is_container else _OPEN
        given = [
            *(["the network"] if self.network else []),
            *(["to change the project"] if self.project == "write" else []),
            *([f"to change {', '.join(self.write)}"] if self.write else []),
            *([f"to read {', '.join(self.read)}"] if self.read else []),
        ]
        return ", ".join(given)


def given(needs: str) -> str:
    """Return what a server is given as the end of a sentence that begins with it."""
    return _GIVEN.get(needs) or f"has {needs}"


def servers_in(section: Mapping[str, Any]) -> tuple[list[Server], list[str]]:
    """Return the servers of the settings, those that are switched off too, and what is wrong with the others."""
    servers: list[Server] = []
    problems: list[str] = []
    names: dict[str, str] = {}
    unusable: dict[str, str] = {}  # whose names stay the person's, and their rules are about names
    for name, entry in sorted(section.items(), key=_is_others):  # the person's own come first
        try:
            server = server_of(name, entry)
        except BadServer as error:
            problems.append(f"The MCP server {shortened(name, MOST_NAME)!r} is not used: {error}.")
            if not _is_strangers(entry):
                unusable[server_part(name)] = name
            continue
        reserved = unusable if _is_strangers(entry) else {}
        part = server_part(name)
        if (other := reserved.get(part) or names.setdefault(part, name)) == name:
            servers.append(server)
        else:
            why = f"its tools would have the names of those of {other}"
            problems.append(f"The MCP server {name!r} is not used: {why}.")
    return servers, problems


def _is_others(item: tuple[str, Any]) -> bool:
    return is_object(item[1]) and ORIGIN_MARK in item[1]


def _is_strangers(entry: Any) -> bool:
    return is_object(entry) and entry.get(ORIGIN_MARK) in ("project", "editor")


def server_of(name: str, entry: Any) -> Server:
    """Return one entry as a server. Raises BadServer."""
    if not name or len(name) > MOST_NAME or not all(c.isalnum() or c in "-_. " for c in name):
        raise BadServer(
            f"a name has letters, digits, spaces and any of - _ . and at most {MOST_NAME} characters"
        )
    if not is_object(entry):
        raise BadServer("its entry is not an object")
    origin = entry.get(ORIGIN_MARK)
    root = str(entry.get("root", "")) if origin == "plugin" else ""
    try:
        server = msgspec.convert(_as_here(entry), decodable(Server))
    except msgspec.ValidationError as error:
        raise BadServer(str(error)) from None
    is_projects, is_editors = origin == "project", origin == "editor"
    said = str([origin, root, server.command, server.args, server.url])
    server = replace(
        server, name=name, is_projects=is_projects, is_editors=is_editors, root=root, said=said
    )
    if is_projects:
        own = {key: value for key, value in entry.items() if key != ORIGIN_MARK}
        # What it is given counts too: what was left by one that had less gets no more.
        written = (server.command, *server.args)
        server = replace(server, words=texts_of(own), written=written, said=str([said, own]))
    if problem := _problem_of(server):
        raise BadServer(problem)
    return server


def _problem_of(server: Server) -> str:
    if bool(server.command) == bool(server.url):
        return "it needs either a command or a url"
    if server.url and not has_reference(server.url) and (problem := _problem_of_address(server)):
        return problem
    if server.type and server.type not in _TRANSPORTS:
        return f"its type is {shortened(server.type, 30)!r}, and ybs knows stdio, http and sse"
    if server.type and _TRANSPORTS[server.type] != server.transport:
        return f"its type is {server.type}, which does not go with what it names"
    if server.is_projects or server.is_editors:
        return _overreach_of(server, "a project's file" if server.is_projects else "an editor")
    return ""


def _problem_of_address(server: Server) -> str:
    try:
        parts_of(server.url, is_own=server.is_own)
    except ValueError as error:
        return f"its url {error}"
    framing = [name for name in server.headers if name.lower() in _FRAMING]
    if framing and not server.is_own:
        return f"its headers name {framing[0]!r}, which says where a call goes or how long it is"
    return ""


def _overreach_of(server: Server, who: str) -> str:
    """Return what a project's file, or an editor, may not do; nothing where it does not try to."""
    is_container = server.command.rpartition("/")[2] in CONTAINERS
    if is_container or not server.sandbox:
        cannot = (
            "start containers, which no sandbox holds" if is_container else "switch the sandbox off"
        )
        return f"{who} cannot {cannot}; an entry of your own settings can"
    if server.replace_default or server.elicitation:
        return f"{who} cannot have a server replace tools or ask you questions; an entry of your own settings can"
    return ""


def _as_here(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry in ybs's own words: other agents write the same in other ways."""
    own = {name: value for name, value in entry.items() if name not in _NOT_WRITTEN}
    if not isinstance(own.get("cwd"), str):
        own.pop("cwd", None)
    command: Any = own.get("command")
    if is_list(command) and command:  # opencode
        args: Any = own.get("args", [])
        own |= {"command": command[0], "args": [*command[1:], *args] if is_list(args) else args}
    for theirs, ours in (("serverUrl", "url"), ("httpUrl", "url"), ("environment", "env")):
        if theirs in own and ours not in own:
            own[ours] = own[theirs]
    if isinstance(own.get("env"), dict):
        own["env"] = {k: v if is_object(v) or is_list(v) else str(v) for k, v in own["env"].items()}
    return own


#: What an address says of its server, where variables may be parts of the name, or one is all of that.
_ORIGIN = re.compile(r"https?://((?:\$\{[^}]*\}|[^/?#$\\])+)(?:[/?#]|\Z)|\$\{[^}]*\}(?:/|\Z)")


def filled(server: Server, environ: Mapping[str, str]) -> Server:
    """Return the server with variables in place of `${NAME}`. Raises BadServer for one that is not set."""

    def text(value: str) -> str:
        return replace_references(value, environ)

    def texts(values: Mapping[str, str]) -> dict[str, str]:
        return {name: text(value) for name, value in values.items()}

    def words(values: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(text, values))

    try:
        ready = replace(
            server,
            command=text(server.command),
            args=words(server.args),
            env=texts(server.env),
            url=text(server.url),
            headers=texts(server.headers),
            oauth=replace(
                server.oauth,
                client_id=text(server.oauth.client_id),
                client_secret=text(server.oauth.client_secret),
            ),
        )
    except Unset as error:
        raise BadServer(f"it names the variable {error}, which is not set") from None
    if ready.url and (problem := _problem_of_address(ready)):
        raise BadServer(problem)
    if has_reference(server.url) and not server.is_own:
        told = _ORIGIN.match(server.url)
        if told is None or (told[1] and urlsplit(ready.url).netloc != text(told[1])):
            raise BadServer("a variable in its url says more than a part of the name of its server")
    return ready


def check_line(server: Server, ready: Server) -> None:
    """Raise BadServer where a key would go over an open line to a server that is `ready`, by its entry: in a header or in its address."""
    if not is_in_clear(ready.url):
        return
    told = _ORIGIN.match(server.url)
    if ready.headers:
        what = "its headers"
    elif "@" in urlsplit(ready.url).netloc:
        what = "the login in its url"
    elif has_reference(server.url[told.end() :] if told else server.url):
        what = "a variable in its url"
    else:
        return
    raise BadServer(
        f"{what} would go over http://, which everybody on the way can read; use https://"
    )


def is_in_clear(url: str) -> bool:
    """Return whether everybody on the way to an address can read what is sent there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def secrets_in(section: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    """Return what in the entries of the settings is a secret by its name, also of servers that are switched off."""
    secrets: list[str] = []
    for server in servers_in(section)[0]:
        try:
            secrets += filled(server, environ).secrets
        except BadServer:
            secrets += server.secrets  # what stands there as it is
    return secrets


def missing_variables(server: Server, environ: Mapping[str, str]) -> str:
    """Return which variable is not set that a server names; nothing where all are."""
    try:
        filled(server, {**environ, **project_variables(Path())})
    except BadServer as error:
        return str(error)
    return ""
