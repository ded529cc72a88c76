"""Mode, model and effort as the protocol's config options and modes."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from acp import RequestError, schema

from ybs.commands.models import AUTO, LEVELS, MODES
from ybs.frontends.json_rpc import INTERNAL_ERROR, INVALID_PARAMS
from ybs.session.reply import MenuItem, Reply
from ybs.session.session import Session

MODE: Final = "mode"
_TITLES: Final = {
    MODE: ("Mode", "What ybs may do without asking.", MODE),
    "model": ("Model", "Who answers.", "model"),
    "effort": ("Effort", "How hard the model thinks.", "thought_level"),
}


class ConfigChoices:
    """The config options of one session. Which models there are is known once `look` has asked the provider."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._models: Sequence[MenuItem] = ()

    async def look(self) -> None:
        """Ask which models there are. Raises YbsError."""
        from ybs.commands.offers import offer_models

        menu = (await offer_models(self._session)).menu
        self._models = menu.items if menu is not None else ()

    @property
    def modes(self) -> schema.SessionModeState:
        """The modes, for editors that know no config options."""
        modes = [schema.SessionMode(id=m, name=m, description=what) for m, what in MODES.items()]
        return schema.SessionModeState(current_mode_id=self._session.mode, available_modes=modes)

    @property
    def options(self) -> list[Any]:
        """All of them, as they stand."""
        effort = str(self._session.config.llm.effort or AUTO)
        efforts = dict.fromkeys((AUTO, *LEVELS, effort))
        return [
            _select(MODE, self._session.mode, ((m, m, what) for m, what in MODES.items())),
            _select("model", *self._offered()),
            _select("effort", effort, ((each, each, "") for each in efforts)),
        ]

    def _offered(self) -> tuple[str, Iterable[tuple[str, str, str]]]:
        """Return the model in use and all that there are, each by the line that chooses it."""
        agent = self._session.agent
        lines = (f"/model {agent.model.name}", f"/provider {agent.provider} {agent.model.name}")
        known = {each.line: (each.line, each.label, each.detail) for each in self._models}
        current = next((each for each in lines if each in known), lines[0])
        return current, ({current: (current, agent.model.name, "")} | known).values()

    async def choose(self, config_id: str, value: object) -> None:
        """Choose a value. Raises RequestError."""
        option = next((each for each in self.options if each.id == config_id), None)
        if option is None or value not in [each.value for each in option.options]:
            raise RequestError(INVALID_PARAMS, f"There is no {config_id} {value}."[:200])
        if option.current_value != value:
            line = str(value) if config_id == "model" else f"/{config_id} {value}"
            reply = await self._session.handle(line)
            if isinstance(reply, Reply) and reply.is_error:
                raise RequestError(INTERNAL_ERROR, reply.text)


def _select(number: str, current: str, values: Iterable[tuple[str, str, str]]) -> Any:
    name, about, category = _TITLES[number]
    options = [
        schema.SessionConfigSelectOption(value=value, name=label, description=what or None)
        for value, label, what in values
    ]
    given = {"name": name, "description": about, "category": category, "options": options}
    return schema.SessionConfigOptionSelect.model_validate(
        {"type": "select", "id": number, "current_value": current, **given}
    )
