"""The firewall of a session: each request and each tool result passes it, and the person hears of what it masked."""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Raw

from ybs.config.schema import Config
from ybs.core.conversation import Conversation
from ybs.core.errors import ToolError
from ybs.core.events import Noticed
from ybs.core.messages import ToolCall
from ybs.core.ports import Answer, Model, Preview, Question, Toolbox
from ybs.core.remedies import Remedy
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.model import PERSON, FirewallModel
from ybs.security.firewall.toolbox import FirewallToolbox
from ybs.security.firewall.vault import own_secrets

if TYPE_CHECKING:
    from ybs.security.firewall.model import Decision, Discovery
    from ybs.security.paths.roots import Roots


class Secrets:
    """Stands before the model and the tools of every turn. One for a session: placeholders stay the same."""

    def __init__(self, config: Config, roots: "Roots") -> None:
        self.firewall = Firewall(config.firewall, own_secrets(os.environ, _keys_in(config)))
        self._roots = roots
        self._model: FirewallModel | None = None
        self._told = 0
        self._is_unattended = False

    def guard(
        self,
        model: Model,
        toolbox: Toolbox,
        ask: "Callable[[Question], Awaitable[Answer]] | None",
    ) -> tuple[Model, Toolbox]:
        """Return the model and the tools behind the firewall. `ask` asks the person, where there is one."""
        if self._model is None:
            self._model = FirewallModel(model, self.firewall)
        self._model.model = model

        self._is_unattended = ask is None
        self._model.ask = None if ask is None else partial(self._asked, ask)
        return self._model, FirewallToolbox(toolbox, self.firewall, self._read)

    def aside(self, model: Model) -> Model:
        """Return a model behind the firewall for requests that are no part of the conversation; nobody is asked."""
        return FirewallModel(model, self.firewall)

    def news(self) -> Noticed | None:
        """Return one line about what was masked since the last time; None where there is nothing to say.

        It is a warning where words of the person's are concerned and nobody was asked about them.
        """
        rows = self.firewall.report.rows[self._told :]
        self._told += len(rows)
        if not rows:
            return None
        masked = dict.fromkeys(f"{row.kind} in {row.place or 'a text'}" for row in rows)
        what = ", ".join(masked)
        if self._is_unattended and any(row.place == PERSON for row in rows):
            text = f"Nobody could be asked, so placeholders were sent in place of secrets: {what}."
            return Noticed(level="warning", text=text)
        return Noticed(level="info", text=f"Masked: {what}.", remedies=(Remedy("list_secrets"),))

    def take_out_refused(self, conversation: Conversation) -> str:
        """Take a message that must not be sent out of the conversation; return the person's words in it."""
        refused = self._model.refused if self._model else None
        if self._model is None or refused is None:
            return ""
        self._model.refused = None
        conversation.replace([each for each in conversation.messages if each is not refused])
        return refused.words if refused.origin == "person" else ""

    async def _asked(
        self, ask: "Callable[[Question], Awaitable[Answer]]", discovery: "Discovery"
    ) -> "Decision":
        answer = await ask(_question(discovery))
        self._is_unattended = answer.is_unattended
        return "mask" if answer.is_allowed or answer.is_unattended else "stop"

    def _read(self, path: str) -> str | None:
        """Return the text of a file as the tools see it, or None."""
        from ybs.tools.reading.document import Document
        from ybs.tools.reading.files import read_if_there

        try:
            resolved = self._roots.resolve(path, is_write=True)
            with self._roots.held(resolved) as place:
                data = read_if_there(place, path)[0]
        except (ToolError, OSError):
            return None
        return None if data is None else Document(data).text


def _keys_in(config: Config) -> list[str]:
    keys = [config.llm.api_key, *(each.api_key for each in config.providers.values())]
    return [key for key in keys if key]


def _question(discovery: "Discovery") -> Question:
    kinds = ", ".join(dict.fromkeys(row.kind for row in discovery.secrets))
    return Question(
        call=ToolCall(id="secret", name="ybs", arguments=Raw(b"{}")),
        effect="read",
        preview=Preview(
            title=f"send {discovery.place} with a placeholder in place of a secret ({kinds})",
            body=discovery.question,
        ),
    )
