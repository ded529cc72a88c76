"""`ybs web`: serves the page from this machine until it is interrupted, and prints a link that logs a browser in."""

import asyncio
import logging
import ssl
import sys
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager, suppress
from html import escape
from pathlib import Path
from socket import AF_INET, AF_INET6, create_server, socket
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

from ybs.config import private_file
from ybs.core.errors import YbsError
from ybs.frontends.headless.output import UsageError, tell, warn, write
from ybs.frontends.headless.run import SIGNALS
from ybs.frontends.serve.sessions import HostedSessions
from ybs.frontends.web import markup
from ybs.frontends.web.access import SHORTEST_PASSWORD, Password, WebLogins
from ybs.frontends.web.api import Api, link_to
from ybs.frontends.web.gate import BoundedProtocol, PageAddress, WebGate, is_for_this_machine
from ybs.frontends.web.pages import GatewayChats, Pages
from ybs.session.options import Options

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.config.host import Host

_PASSWORD, _LOGINS, _OPENER = "web-password.json", "web-logins.json", "open.html"
_ELSEWHERE: Final = (
    "--host {host} can be reached from other machines. That needs encryption: name --cert and --key, or --proxy with the "
    "address of a proxy that encrypts. Without --host the page is for this machine alone."
)
_UNSET: Final = "A page for other machines needs a password. Set one first: ybs web password"
_WRONG_PROXY: Final = "--proxy takes the address that browsers see, such as https://ybs.example.org"
_NO_NAME: Final = "--host {host} is no name. Say with --name by which names browsers find the page."
_SERVING: Final = "ybs: the page is open at {origin}. Ctrl-C ends it, and every session in it. The link works once:"


def web(arguments: "Namespace", options: Options) -> int:
    """Serve the page, or set its password, and return the exit code. Raises YbsError."""
    if arguments.action == "password":
        return set_password(Password(options.host.config_folder / _PASSWORD))
    try:
        return asyncio.run(_run(arguments, options))
    except UsageError as error:
        tell(f"ybs: {error}")
        return 2


async def _run(arguments: "Namespace", options: Options) -> int:
    """Serve until a signal comes; return the exit code. Raises UsageError and YbsError."""
    loop, over, codes = asyncio.get_running_loop(), asyncio.Event(), list[int]()

    def stop(code: int) -> None:
        codes.append(code)
        over.set()

    for number, code in SIGNALS.items():
        loop.add_signal_handler(number, stop, code)
    async with shown(arguments, arguments.port, options):
        await over.wait()
    return 0 if codes[0] == 130 else codes[0]


@asynccontextmanager
async def shown(
    arguments: "Namespace",
    port: int | None,
    options: Options,
    hosted: HostedSessions | None = None,
    chats: GatewayChats | None = None,
) -> AsyncGenerator[None]:
    """Serve pages where the arguments say, and print a link to them, until the block ends. Raises UsageError and YbsError.

    Without a port it is that of the logins that are kept, and where there are none a new one. The sessions are those of a server (`hosted`) or the pages' own; see `Pages`.
    """
    pages, host = Pages(options, hosted, chats), options.host
    # A library would write what it logs to the terminal, past the gate; what clients send stands in it.
    for name in ("uvicorn", "uvicorn.error", "asyncio"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    tls = (str(arguments.cert), str(arguments.key)) if arguments.cert else None
    password = Password(host.config_folder / _PASSWORD)
    access = WebLogins(host.state_folder / _LOGINS if tls else None)
    with (
        _bound(arguments.host, port) if port is not None else _own(arguments.host, access) as bound
    ):
        place = place_of(arguments, bound.getsockname()[1], password)
        async with serving(pages, password, access, place, bound, tls):
            warn(pages.saved.loaded.warnings)
            tell(_SERVING.format(origin=place.origins[0]))
            link = link_to(place, access)
            write(link)
            sys.stdout.flush()
            async with _opened(host, link):
                yield


def set_password(password: Password) -> int:
    """Ask for the password twice, or read it from standard input, and keep its hash. Raises YbsError."""
    if sys.stdin.isatty():
        from getpass import getpass

        tell(
            f"A password of at least {SHORTEST_PASSWORD} characters, for logins from other machines."
        )
        said = getpass("Password: ")
        if said != getpass("Again: "):
            raise YbsError("The two are not the same. Nothing was changed.")
    else:
        said = sys.stdin.readline().rstrip("\n")
    password.set(said)
    write("The password is set. Its hash is kept, and not the password itself.")
    return 0


def place_of(arguments: "Namespace", port: int, password: Password) -> PageAddress:
    """Return where the page will be. Raises UsageError where that would not be safe."""
    host, proxy, has_tls = str(arguments.host), str(arguments.proxy), bool(arguments.cert)
    if has_tls != bool(arguments.key):
        raise UsageError("--cert and --key belong together.")
    if is_for_this_machine(host) and not proxy:
        # A name may lead a browser to another program of this machine, which has no certificate.
        address = _address(host)
        names = dict.fromkeys((address, "127.0.0.1", "localhost", "::1")) if has_tls else [address]
        return PageAddress(origins=_origins(names, port, is_secure=has_tls), is_secure=has_tls)
    if not password.is_set:
        raise UsageError(_UNSET)
    if not has_tls and not (proxy and is_for_this_machine(host)):
        raise UsageError(_ELSEWHERE.format(host=host))
    if proxy:
        address = urlsplit(proxy)
        if address.scheme != "https" or not address.netloc or address.path.strip("/"):
            raise UsageError(_WRONG_PROXY)
        origins = (f"https://{address.netloc.lower()}",)
        return PageAddress(origins=origins, is_secure=True, has_proxy=True)
    names = arguments.name or ([] if not host.strip("0.:") else [host])
    if not names:
        raise UsageError(_NO_NAME.format(host=host))
    return PageAddress(origins=_origins(names, port, is_secure=True), is_secure=True)


def _origins(names: Iterable[str], port: int, *, is_secure: bool) -> tuple[str, ...]:
    scheme = "https" if is_secure else "http"
    hosts = (f"[{name}]" if ":" in name else name.lower() for name in names)
    return tuple(f"{scheme}://{host}:{port}" for host in hosts)


class WebServer(uvicorn.Server):
    """uvicorn's server, which leaves signals to the frontend."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        self.is_up.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take no signals."""
        yield


@asynccontextmanager
async def serving(
    pages: Pages,
    password: Password,
    access: WebLogins,
    place: PageAddress,
    bound: socket,
    tls: tuple[str, str] | None = None,
) -> AsyncGenerator[None]:
    """Serve pages on a bound socket until the block ends; then their own sessions end. Raises YbsError."""
    app: ASGIApp = WebGate(Api(pages, access, password, place).app(), place, access)
    if tls is not None:
        _check_tls(*tls)
    config = uvicorn.Config(
        app,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=2,
    )
    server = WebServer(config)
    markup.markdown("")  # imports what the first session would wait for
    running = asyncio.create_task(server.serve([bound]))
    try:
        await server.is_up.wait()
        yield
    finally:
        await pages.aclose()
        server.should_exit = True
        await running


def _check_tls(certificate: str, key: str) -> None:
    """Raise YbsError where the certificate and its key cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise YbsError(
            f"The certificate {certificate} and its key cannot be used: {error}"
        ) from error


def _address(host: str) -> str:
    """Return the address that is bound for a host, which the page is called by: `localhost` may mean another one too."""
    return "127.0.0.1" if host == "localhost" else host.strip("[]")


def _bound(host: str, port: int) -> socket:
    """Return a socket that listens. Raises YbsError where that cannot be done."""
    name = _address(host)
    family = AF_INET6 if ":" in name else AF_INET
    try:
        bound = create_server((name, port), family=family, backlog=256)
    except OSError as error:
        why = f"Port {port} of {host} cannot be used ({error.strerror})."
        raise YbsError(f"{why} Choose another one with --port.") from error
    bound.setblocking(False)
    return bound


def _own(host: str, access: WebLogins) -> socket:
    """Return a socket on the port of the logins that are kept; without any, or where somebody else has taken it, on a new one.

    Without a certificate none are kept: who had a port for a while can leave things in the browser, and has none of the new port.
    """
    ports = (urlsplit(each.origin).port for each in access.logins if each.origin)
    if port := next(ports, 0):
        with suppress(YbsError):
            return _bound(host, port)
    return _bound(host, 0)


@asynccontextmanager
async def _opened(host: "Host", link: str) -> AsyncGenerator[None]:
    """Open the link where there is a desktop, by way of a file: the arguments of a program can be read by everybody."""
    environ = host.environ
    has_desktop = "DISPLAY" in environ or "WAYLAND_DISPLAY" in environ or sys.platform == "darwin"
    if not has_desktop or not sys.stdout.isatty():
        yield
        return
    path = host.state_folder / _OPENER
    words = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={escape(link)}"><title>ybs</title>'
    private_file.replace(path, words.encode())
    try:
        with suppress(YbsError, OSError):
            await _open(host, path)
        yield
    finally:
        private_file.remove(path)


async def _open(host: "Host", path: Path) -> None:
    from ybs.security.launcher import environ_away, start_in_loop, trusted_program
    from ybs.security.sandbox.launch import Launch

    name = "open" if sys.platform == "darwin" else "xdg-open"
    program = trusted_program(name, environ=host.environ)
    if program is not None:
        environ = environ_away(host.environ)
        await start_in_loop(Launch((str(program), path.as_uri()), environ))
