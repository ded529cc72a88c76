"""Projects that want something, and trust in them; shared by tests of several rooms."""

import json
from pathlib import Path
from typing import Any

from hosts import this_host
from ybs.config.layers import Loaded
from ybs.config.review import Review
from ybs.trust.decision import give, review_of
from ybs.trust.settings import load


def write(folder: Path, settings: Any, name: str = ".ybs.json") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(settings if isinstance(settings, str) else json.dumps(settings))
    return file


def give_trust(folder: Path) -> Loaded:
    give(this_host(), review_of(load(this_host(), folder=folder), folder))
    return load(this_host(), folder=folder)


def is_trusted(folder: Path) -> bool:
    review = load(this_host(), folder=folder).review
    return review is not None and review.is_trusted


POWERFUL = {
    "llm": {"model": "small"},
    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./hook.sh --now"}]}]},
    "mcpServers": {"files": {"command": "node", "args": ["server.js"], "env": {"T": "${TOKEN}"}}},
}


def wanting(project: Path, settings: dict[str, Any] | None = None) -> Review:
    (project / ".ybs.json").write_text(json.dumps(POWERFUL if settings is None else settings))
    review = load(this_host(), folder=project).review
    assert review is not None
    return review


def trusted(project: Path, settings: dict[str, Any] | None = None, **options: Any) -> Loaded:
    give(this_host(), wanting(project, settings))
    loaded = load(this_host(), folder=project, **options)
    assert loaded.review is not None
    assert loaded.review.is_trusted
    return loaded


def put(folder: Path, path: str, text: str, mode: int = 0o644) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file
