"""The page's application on a project, with a scripted model in place of a provider, and browsers that have logged in."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.frontends.web.access import Password, WebLogins
from ybs.frontends.web.api import Api
from ybs.frontends.web.gate import TOKEN_HEADER, PageAddress, WebGate
from ybs.frontends.web.pages import Pages
from ybs.session.options import Options
from ybs.testing import ScriptedModel

ORIGIN = "http://127.0.0.1:8707"
PLACE = PageAddress(origins=(ORIGIN, "http://localhost:8707"))


class Site:
    """The application without a socket."""

    def __init__(self, project: Path, *script: Any, **options: Any) -> None:
        host = this_host()
        given = {"host": host, "model": ScriptedModel(script), "sandbox": False, **options}
        self.pages = Pages(replace(Options.of(project, given), commands=None))
        self.access = WebLogins(None)
        self.password = Password(host.config_folder / "web-password.json")
        api = Api(self.pages, self.access, self.password, PLACE)
        self.app = WebGate(api.app(), PLACE, self.access)

    def browser(self, **headers: str) -> httpx2.AsyncClient:
        """Return a browser that has not logged in, on the page."""
        transport = httpx2.ASGITransport(app=self.app)
        said = {"origin": ORIGIN, "sec-fetch-site": "same-origin", **headers}
        return httpx2.AsyncClient(transport=transport, base_url=ORIGIN, headers=said)

    def entered(self) -> httpx2.AsyncClient:
        """Return a browser that has logged in."""
        secrets, browser = self.access.begin("a browser", "127.0.0.1", ORIGIN), self.browser()
        browser.cookies.set(PLACE.cookie, secrets.cookie)
        browser.headers[TOKEN_HEADER] = secrets.token
        return browser


@pytest.fixture
async def site(project: Path) -> AsyncIterator[Callable[..., Site]]:
    """Return a function that makes the application of a script."""
    made: list[Site] = []

    def make(*script: Any, **options: Any) -> Site:
        made.append(Site(project, *script, **options))
        return made[-1]

    yield make
    for each in made:
        await each.pages.aclose()
