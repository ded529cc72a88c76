"""The person's permanent rules for one project: kept in ybs's state folder, bound to the project's folder.

Nothing of it comes from the project itself, and where another folder lies at its path they only deny. Of a file that others can write, or that cannot be read, no rule counts; as
some of them may deny, every call is asked about then, until the file is deleted or can be read.
"""

import re
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ybs.config import private_file
from ybs.config.document import visible
from ybs.config.host import Host
from ybs.core.decoding import from_json
from ybs.core.errors import ConfigError
from ybs.trust.place import Place, lies_there, place_of

LARGEST_FILE = 1_000_000
#: `grants` are what "always" stored, `allow` and `deny` are rules that the person wrote.
KeptKind: TypeAlias = Literal["grants", "allow", "deny"]
_RULE = r"(?P<tool>[\w*.-]+)(?:\((?P<inner>.*)\)|:(?P<rest>.*))?"
_REPLACED = (
    "What you allowed in this project before does not count: another folder lies at its path now."
)


def parts_of(rule: str) -> tuple[str, str | None] | None:
    """Return the tool that a rule names and its pattern (None: it is about every call), or None where the rule is not valid."""
    found = re.fullmatch(_RULE, rule.strip(), re.DOTALL)
    if found is None:
        return None
    pattern = found["inner"] if found["rest"] is None else found["rest"]
    return None if pattern is not None and not pattern.strip() else (found["tool"], pattern)


class RulesRecord(Struct, frozen=True, kw_only=True):
    """What is kept for one project, whose real path is `folder`. `place` tells it from another one that has its path later."""

    folder: str
    place: Place = ""
    grants: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    version: int = 1


class ProjectRules:
    """The rules of one project, read when they are first needed. `may_write` is false in an incognito session; `only_denies`: none allows."""

    def __init__(
        self, host: Host, folder: Path, *, may_write: bool = True, only_denies: bool = False
    ) -> None:
        self._host, self.may_write, self._only_denies = host, may_write, only_denies
        self._path = folder.resolve()
        self._folder = str(self._path).encode(errors="backslashreplace").decode()
        self._record: RulesRecord | None = None
        #: Why some of the file is ignored, and why rules that deny may be among that; empty where nothing is.
        self.warning = self.missing = ""

    def ignore(self, error: ConfigError, kind: KeptKind) -> None:
        """Say that a rule of these makes no sense, and is ignored."""
        self.warning = f"A rule that is kept for this project is ignored: {error}"
        self.missing = self.warning if kind == "deny" else self.missing

    @property
    def record(self) -> RulesRecord:
        """What is kept; empty where there is nothing or the file is of no use, and then `missing` says why."""
        if self._record is None:
            self.warning = self.missing = ""
            try:
                record = self._read()
            except (OSError, ConfigError) as error:
                why = f"Your rules for this project are ignored, so every call is asked about: {error}"
                self.warning = self.missing = why
                return RulesRecord(folder=self._folder)
            self._record = _denying(record) if self._only_denies else record
        return self._record

    def add(self, kind: KeptKind, rule: str) -> None:
        """Keep a rule. Raises ConfigError and OSError."""
        self._change(kind, rule, is_wanted=True)

    def remove(self, kind: KeptKind, rule: str) -> None:
        """Forget a rule. Raises ConfigError and OSError."""
        self._change(kind, rule, is_wanted=False)

    def _change(self, kind: KeptKind, rule: str, *, is_wanted: bool) -> None:
        if not self.may_write:
            raise ConfigError("Nothing is kept: this session is incognito.")
        record = self._read()  # another ybs may have written since
        others = tuple(each for each in getattr(record, kind) if each != rule)
        rules = {kind: (*others, rule) if is_wanted else others}
        self._record = replace(record, place=place_of(self._host, self._path), **rules)
        private_file.replace(self._file, msgspec.json.encode(self._record), waits=False)

    @property
    def _file(self) -> Path:
        from hashlib import sha256  # not before the first call of a tool

        name = sha256(self._folder.encode()).hexdigest()
        return self._host.state_folder / "permissions" / f"{name}.json"

    def _read(self) -> RulesRecord:
        """Read the file. Raises ConfigError and OSError."""
        file = self._file
        data = private_file.read(file, most_bytes=LARGEST_FILE)
        if data is None:
            return RulesRecord(folder=self._folder)
        try:
            record = from_json(data, RulesRecord)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{visible(str(file))} is damaged ({error}). Delete it and allow again what you want."
            ) from error
        if record.folder != self._folder:  # the name of the file is a digest of the path
            raise ConfigError(f"{visible(str(file))} is about another folder. Delete it.")
        if not (record.grants or record.allow):
            return record
        if lies_there(self._host, record.place, self._path):
            return record
        self.warning = _REPLACED
        return _denying(record)


def _denying(record: RulesRecord) -> RulesRecord:
    """Return of a record what denies."""
    return replace(record, grants=(), allow=())
