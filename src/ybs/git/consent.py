"""The person's consent to commits of ybs: asked once for a repository, and kept outside of it."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from ybs.config import private_file
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError
from ybs.trust.place import Place, lies_there, place_of

#: What the person said: `hooks` are those, by their digest, that they agreed to have run; None: they said nothing.
Asked: TypeAlias = "Callable[[CommitWish], Awaitable[bool | None]]"


class _Answer(Struct, frozen=True, kw_only=True):
    """The person's answer for one repository, whose git folder it names. `place` tells that from another one that has its path later."""

    repository: str
    place: Place = ""
    may_commit: bool
    hooks: str = ""
    version: int = 1


class CommitWish(Struct, frozen=True, kw_only=True):
    """What the person is asked: to commit in a repository, and to have these hooks run before each commit."""

    repository: Path
    hooks: tuple[str, ...] = ()
    are_new: bool = False  # commits were agreed to before, these hooks were not


class Consent:
    """The person's word on commits, kept on their `host`. `rule` is that of their settings; where it is `ask`, `ask` asks, once in a session.

    Without `may_write` (incognito) nothing is committed.
    """

    def __init__(
        self,
        host: Host,
        rule: Literal["always", "ask", "never"],
        *,
        ask: "Asked | None" = None,
        may_write: bool = True,
    ) -> None:
        self.host, self.may_write = host, may_write
        self.rule, self._ask = rule, ask
        self._was_asked = False

    def is_possible(self, repository: Path) -> bool:
        """Return whether there may be a commit at the end of a turn."""
        return self._known(repository) if self.is_known(repository) else self._may_ask

    async def given(self, repository: Path, hooks: tuple[str, ...], digest: str) -> bool:
        """Return whether the person wants commits there, asked where that is not known yet."""
        if not self.is_known(repository) and self._may_ask:
            await self._asked(CommitWish(repository=repository, hooks=hooks), digest)
        return self._known(repository)

    async def given_to_hooks(self, repository: Path, hooks: tuple[str, ...], digest: str) -> bool:
        """Return whether these very hooks may run: the person has agreed to them, which trust in the project is not, as it does not show them."""
        answer = recall(self.host, repository)
        if answer is not None and answer.hooks == digest:
            return True
        if not self._may_ask:
            return False
        await self._asked(CommitWish(repository=repository, hooks=hooks, are_new=True), digest)
        answer = recall(self.host, repository)
        return answer is not None and answer.hooks == digest

    def is_known(self, repository: Path) -> bool:
        """Return whether nobody needs to be asked."""
        return self.rule != "ask" or recall(self.host, repository) is not None

    def _known(self, repository: Path) -> bool:
        """Return what is known: an answer for this repository counts more than what is set for all."""
        answer = recall(self.host, repository)
        if self.rule == "never" or answer is None:
            return self.rule == "always"
        return answer.may_commit

    @property
    def _may_ask(self) -> bool:
        return self._ask is not None and not self._was_asked

    async def _asked(self, wish: CommitWish, digest: str) -> None:
        assert self._ask is not None  # noqa: S101 - whoever calls has looked
        self._was_asked = True
        said = await self._ask(wish)
        if said is None:
            return
        hooks = digest if said and wish.hooks else ""
        # A no to new hooks says nothing about commits: there is none as long as they are there.
        keep(self.host, wish.repository, may_commit=said or wish.are_new, hooks=hooks)


def recall(host: Host, repository: Path) -> _Answer | None:
    """Return what the person said of a repository, given its git folder; None where nothing, it is of no use, or a yes was to another one."""
    try:
        data = private_file.read(_file(host, repository))
        answer = from_json(data or b"", _Answer)
    except (OSError, ConfigError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    # The name of the file is a digest of the path; the path in it must agree.
    if answer.repository != str(repository):
        return None
    is_of_it = not answer.may_commit or lies_there(host, answer.place, repository)
    return answer if is_of_it else None


def keep(host: Host, repository: Path, *, may_commit: bool, hooks: str = "") -> None:
    """Keep the person's answer. Raises ConfigError and OSError."""
    answer = _Answer(
        repository=str(repository),
        place=place_of(host, repository),
        may_commit=may_commit,
        hooks=hooks,
    )
    private_file.replace(_file(host, repository), msgspec.json.encode(answer))


def forget(host: Host, repository: Path) -> bool:
    """Forget the answer, so that the next turn asks again. Return whether there was one."""
    return private_file.remove(_file(host, repository))


def _file(host: Host, repository: Path) -> Path:
    name = sha256(str(repository).encode(errors="surrogateescape")).hexdigest()
    return host.state_folder / "commits" / f"{name}.json"
