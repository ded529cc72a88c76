"""The firewall of a session: each request and each tool result passes it, and the person hears of what it masked.

Secrets that are known beforehand keep where they come from. All of them are masked in what a model reads and what is written down; in a question hide
only those of the person's own environment, key file and settings, never what a project, a plugin, an editor or a server calls a secret.
"""

import re
from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, structs

from ybs.config.host import Host
from ybs.config.key_store import kept_keys
from ybs.config.layers import Loaded
from ybs.config.schema import Config
from ybs.config.tree import is_list, is_object
from ybs.config.variables import variables_in
from ybs.core.errors import ToolError
from ybs.core.events import Noticed
from ybs.core.messages import Message, ToolCall
from ybs.core.ports import Confirm, Model, Preview, Question, Toolbox
from ybs.core.remedies import Remedy
from ybs.security.firewall.checks import is_random
from ybs.security.firewall.masking import Firewall
from ybs.security.firewall.model import PERSON, Decision, Discovery, FirewallModel
from ybs.security.firewall.toolbox import FirewallToolbox
from ybs.security.firewall.vault import PLACEHOLDER, own_secrets
from ybs.security.policy.confirm import nobody

if TYPE_CHECKING:
    from ybs.security.paths.roots import Roots


class Secrets:
    """Stands before the model and the tools of every agent. One firewall for a session: placeholders stay the same.

    `ask` asks the person about a secret in their words; `is_attended` says whether there is anybody to ask.
    """

    def __init__(
        self,
        loaded: Loaded,
        roots: "Roots",
        ask: Confirm = nobody,
        is_attended: Callable[[], bool] = lambda: False,
        firewall: Firewall | None = None,
    ) -> None:
        self._loaded, self._roots = loaded, roots
        self.firewall = firewall or _firewall_of(loaded)
        self._told = len(self.firewall.report.rows)
        self._ask, self._is_attended = ask, is_attended
        self._was_unattended = False

    def reading(self, roots: "Roots") -> "Secrets":
        """Return the same firewall, for tools that work in other folders."""
        made_by = (self._loaded, roots, self._ask, self._is_attended)
        return Secrets(*made_by, firewall=self.firewall)

    def before(self, model: Model) -> FirewallModel:
        """Return the model of an agent behind the firewall."""
        return FirewallModel(model, self.firewall, self._asked)

    def guarded(self, toolbox: Toolbox) -> Toolbox:
        """Return tools behind the firewall."""
        return FirewallToolbox(toolbox, self.firewall, self._read)

    def side_model(self, model: Model) -> Model:
        """Return a model behind the firewall for requests that are not part of the conversation; nobody is asked."""
        return FirewallModel(model, self.firewall)

    def last_look(self, model: Model) -> Model:
        """Return a model behind the firewall for what was added to requests behind the other one; nobody is asked."""
        return FirewallModel(model, self.firewall, person="what goes with your message")

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
        if (self._was_unattended or not self._is_attended()) and any(
            row.place == PERSON for row in rows
        ):
            text = f"Nobody could be asked, so placeholders were sent instead of secrets: {what}."
            return Noticed(level="warning", text=text)
        return Noticed(
            level="info", text=f"Hidden from the model: {what}.", remedies=(Remedy("list_secrets"),)
        )

    def masked(self, message: Message) -> Message:
        """Mask the secrets in a message that is about to be cut. The report is of what a model was to see."""
        from ybs.security.firewall.structs import masked  # few turns compact

        with self.firewall.unreported():
            return masked(self.firewall, message, "a summary")

    def kept(self, text: str) -> str:
        """Return a text as another session may read it: in the place of a secret stands its kind, as a placeholder means nothing there."""
        with self.firewall.unreported():
            text = self.firewall.mask(text)
        return PLACEHOLDER().sub(r"[\1]", text) if "[" in text else text

    def masked_words(self, words: str) -> str:
        """Return a prompt without its secrets, for a model that sorts prompts; nothing where a part of a private key may be left."""
        from ybs.security.firewall.structs import has_rest_of_key  # few sessions route

        clean = self.firewall.mask(words, "a prompt")
        return "" if has_rest_of_key(clean) else clean

    async def _asked(self, discovery: Discovery) -> Decision:
        if not self._is_attended():
            return "mask"
        answer = await self._ask(_question(discovery))
        self._was_unattended = answer.is_unattended
        return "mask" if answer.is_allowed or answer.is_unattended else "stop"

    def _read(self, path: str) -> str | None:
        """Return the text of a file as the tools see it, or None."""
        from ybs.tools.reading.document import TextFile
        from ybs.tools.reading.files import read_if_there

        try:
            resolved = self._roots.resolve(path, is_write=True)
            with self._roots.held(resolved) as place:
                data = read_if_there(place, path)[0]
        except (ToolError, OSError):
            return None
        return None if data is None else TextFile(data).text


def _firewall_of(loaded: Loaded) -> Firewall:
    host, config = loaded.host, loaded.config
    keys, tokens = kept_keys(host)
    known = own_secrets(host.environ, [*keys, *_keys_in(host, config)])
    said = _persons(
        config, "", {key for key, each in loaded.origins.items() if each.layer != "project"}
    )
    own = known if said is config else own_secrets(host.environ, [*keys, *_keys_in(host, said)])
    others = [each for each in own_secrets({}, [*known, *tokens]) if each not in own]
    return Firewall(config.firewall, own, others)


def _persons(value: Any, key: str, own: Set[str]) -> Any:
    """Return a part of the settings without what is not among the `own` values, by their dotted keys. The same where all of it is."""
    if isinstance(value, Struct):
        inner = structs.asdict(value)
    elif is_object(value) and value:
        inner = value
    else:
        return value if not value or key in own else type(value)()
    changed = dict[str, Any]()
    for name, each in inner.items():
        if (seen := _persons(each, f"{key}.{name}" if key else name, own)) is not each:
            changed[name] = seen
    if not changed:
        return value
    return structs.replace(value, **changed) if isinstance(value, Struct) else inner | changed


def _keys_in(host: Host, config: Config) -> list[str]:
    """Return the keys in settings, and the values of the variables that settings name for one."""
    entries = [*config.providers.values()]
    keys = [config.llm.api_key, *(each.api_key for each in entries)]
    names = [each.api_key_env for each in entries]
    fields = {f"{n}_url": each.endpoint for n, each in enumerate((config.llm, *entries))}
    fields["database_url"] = config.gateway.database
    for channel in config.gateway.channels.values():
        own = {name: value for name, value in channel.items() if isinstance(value, str)}
        names += [value for name, value in own.items() if name.endswith("_env")]
        fields |= {f"{len(fields)}_{name}": value for name, value in own.items()}
    headers = [each.headers for each in entries]
    headers += [each.get("headers") for each in config.mcpServers.values() if is_object(each)]
    fields["proxy_url"] = config.network.proxy or ""
    for entry in entries:
        asked = re.findall(r"[?&]([^=&#]+)=([^&#]+)", entry.endpoint)
        for name, value in (*asked, *_texts_in(entry.extra_body)):
            fields[f"{len(fields)}_{name}"] = value
    for name in variables_in(headers):
        fields[f"{name}_key"] = host.environ.get(name, "")  # it may as well hold a path or a word
    places = [[each.endpoint for each in entries], config.mcpServers]
    for name in variables_in(places):  # what stands behind an option, or in an address
        value = host.environ.get(name, "")
        fields |= {f"{name}_key": value} if is_random(value.encode(errors="replace")) else {}
    texts = [str(text) for each in headers if is_object(each) for text in each.values()]
    words = [word for text in texts for word in text.split() if is_random(word.encode())]
    fields |= {f"{len(fields) + n}_key": word for n, word in enumerate(words)}
    keys += [host.environ.get(name or "") for name in names]
    for agent in config.agents.acp.values():
        keys += own_secrets(agent.env)
    if config.mcpServers:
        from ybs.tools.mcp.settings import secrets_in  # many have none

        keys += secrets_in(config.mcpServers, host.environ)
    named = [*_texts_in(config.profiles)]  # in force or not
    keys += [text for name, text in named if name == "api_key"]
    keys += [host.environ.get(text) for name, text in named if name.endswith("_env")]
    given = {name: value for name, value in fields.items() if value}
    return [*(key for key in keys if key), *own_secrets(given)]


def _texts_in(tree: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each text of JSON data with the name that it has there."""
    if isinstance(tree, str):
        yield name, tree
    for key, value in tree.items() if is_object(tree) else ():
        yield from _texts_in(value, key)
    for value in tree if is_list(tree) else ():
        yield from _texts_in(value, name)


def _question(discovery: Discovery) -> Question:
    kinds = ", ".join(dict.fromkeys(row.kind for row in discovery.secrets))
    return Question(
        call=ToolCall(id="secret", name="ybs", arguments=Raw(b"{}")),
        effect="read",
        preview=Preview(
            title=f"send {discovery.place} with a placeholder in place of a secret ({kinds})",
            body=discovery.question,
        ),
    )
