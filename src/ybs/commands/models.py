"""Commands about the model, its provider, its effort, the mode and the profile."""

from typing import TYPE_CHECKING, Final, get_args

import msgspec
from msgspec.structs import replace

from ybs.agent.model_choice import IN_PROCESS
from ybs.commands.router import routing_of
from ybs.config.schema import Effort, Mode, PromptForm
from ybs.config.tree import is_object
from ybs.core.decoding import decodable
from ybs.core.errors import YbsError
from ybs.core.messages import UserMessage
from ybs.core.wording import listed
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session
from ybs.session.status import Status
from ybs.transcripts.facts import GO_AHEAD, proposed_plan

if TYPE_CHECKING:
    from ybs.router.bandit import Arm


#: What each mode does without asking.
MODES: dict[Mode, str] = {
    "ask": "edits files that it has read; runs commands that change nothing; asks before all else",
    "accept-edits": "edits and creates files; asks before it deletes files or runs commands that write",
    "auto": "works without asking, except before destructive actions",
    "plan": "looks at anything, with commands too; changes nothing",
    "deny": "never asks: refuses what the mode ask would ask about",
    "bypass": "never asks and allows everything but blocked commands",
}
#: The mode `ask` with a question before each edit, for the session; `safety.ask_before_edits` says it for good.
ASK_EDITS = "ask edits"
#: What can stand behind /mode.
MODE_WORDS = {**MODES, ASK_EDITS: "like ask, but asks before each edit too; for this session"}


async def change_provider(session: Session, argument: str) -> Reply:
    """Offer the providers, or switch: `list`, `current`, or NAME [MODEL]."""
    name, _, model = argument.partition(" ")
    match name.lower():
        case "" | "list":
            from ybs.commands.offers import offer_providers

            reply = await offer_providers(session)
            return reply if not name else replace(reply, is_listed=True)
        case "current":
            return Reply(text=f"{session.agent.server} {session.agent.model.name}")
        case _ if not model and not _has_model(session, name):
            from ybs.commands.offers import offer_models_at

            return await offer_models_at(session, name)
        case _:
            return await switch(session, provider=name, model=model.strip() or None)


def _has_model(session: Session, provider: str) -> bool:
    """Return whether a provider comes with a model, its own or that of the settings. Raises ConfigError."""
    from ybs.providers.registry import chosen_name, find_provider

    config = session.config
    is_set = bool(config.llm.model) and provider == chosen_name(config)
    return is_set or provider == IN_PROCESS or bool(find_provider(provider, config).model)


async def change_model(session: Session, argument: str) -> Reply:
    """Offer the models, or take another one of the same provider: NAME, NAME short, NAME full."""
    if not argument:
        from ybs.commands.offers import offer_models

        return await offer_models(session)
    if (arm := _arm(session, argument)) is not None:
        return await switch(session, provider=arm.provider, model=arm.model)
    name, _, last = argument.rpartition(" ")
    form = next((each for each in get_args(PromptForm) if name and each == last.lower()), None)
    return await switch(session, provider=None, model=name if form else argument, form=form)


def _arm(session: Session, name: str) -> "Arm | None":
    """Return the arm of the session's router that a name means."""
    routing = routing_of(session)
    return routing.roster.of_model(name) if routing is not None else None


async def switch(
    session: Session, *, provider: str | None, model: str | None, form: PromptForm | None = None
) -> Reply:
    """Use another model from now on. The conversation stays; say so when it no longer fits."""
    await session.switch_model(provider=provider, model=model, form=form)
    if (routing := routing_of(session)) is not None:
        arms = routing.arms
        return Reply(
            text=f"The router picks the model for each turn, from {listed(arms)}. /router shows how."
        )
    status = session.status()
    prompt = f" with the {form} prompt" if form in ("short", "full") else ""
    lines = [f"Now using {status.shown_provider} {status.model}{prompt}."]
    tokens = session.estimated_tokens()
    if tokens > session.agent.window.room:
        lines.append(
            f"The conversation (about {tokens:,} tokens) does not fit into its window of "
            f"{status.window:,}: it will be shortened with your next message."
        )
    lines += await _doubts(session, provider, model)
    return Reply(text="\n".join(lines))


async def _doubts(session: Session, provider: str | None, model: str | None) -> list[str]:
    """Say whose server it is, if another user's, and name the nearest models if the provider, asked for a moment, does not list this one."""
    from ybs.commands.offers import names_of, whose_server

    doubts = await whose_server(session, provider) if provider is not None else []
    names = await names_of(session) if model is not None else []
    if model is None or not names:
        return doubts
    if any(name == model or name.startswith((f"{model}:", f"{model}-")) for name in names):
        return doubts
    from difflib import get_close_matches  # only after a doubtful name

    near = get_close_matches(model, names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else " /model lists its models."
    return [*doubts, f"{session.agent.server} does not list that model.{hint}"]


async def change_mode(session: Session, argument: str) -> Reply:
    """Show or choose what is allowed without asking."""
    policy, word = session.environment.policy, " ".join(argument.lower().split())
    named = "ask" if word == ASK_EDITS else word
    chosen: Mode | None = next((mode for mode in MODES if mode == named), None)
    if chosen is not None:
        session.mode = chosen
        if chosen == "ask":
            policy.asks_before_edits = word == ASK_EDITS
        return Reply(text=f"Mode: {mode_text(session.status(), ' (')})")
    if argument:
        names = ", ".join(MODE_WORDS)
        return Reply.error(f"There is no mode {argument!r}. The modes are: {names}")
    current = session.status().shown_mode
    items = tuple(
        MenuItem(f"/mode {name}", name, what, is_current=name == current)
        for name, what in MODE_WORDS.items()
    )
    menu = Menu("What may ybs do without asking?", items)
    return Reply(text=f"Mode: {current}", menu=menu)


def mode_text(status: Status, sign: str = ": ") -> str:
    """Name the mode, and say what it does without asking."""
    name = status.shown_mode
    return f"{name}{sign}{MODE_WORDS[name]}"


NONE = (
    "There are no profiles. A profile is a set of settings under `profiles` in your configuration, such as "
    '"profiles": {"review": {"safety": {"mode": "plan"}}}.'
)


async def change_profile(session: Session, argument: str) -> Reply:
    """Offer the profiles, or go on with one."""
    if not argument:
        items = [
            MenuItem(
                f"/profile {name}",
                name,
                ", ".join(settings) if is_object(settings) else "",
                is_current=name == session.loaded.profile,
            )
            for name, settings in session.config.profiles.items()
        ]
        menu = Menu("Profiles", tuple(items)) if items else None
        return Reply(text="" if items else NONE, menu=menu)
    if session.conversation.messages and not session.journal.path:
        raise YbsError(
            "This conversation is not saved, so it cannot go on with other settings. Start ybs with --profile, or begin with /new."
        )
    before = session.journal.path and session.journal.name
    await session.use_profile(argument)
    status = session.status()
    lines = [
        f"Profile {argument}: {status.shown_provider} {status.shown_model}, mode {session.mode}."
    ]
    if before:
        lines.append(f"You continue in a copy; {before} stays as it is.")
    return Reply(text="\n".join([*lines, *session.warnings]))


def profile_names(session: Session) -> list[str]:
    """Return the names that may stand behind /profile."""
    return [*session.config.profiles]


LEVELS: Final[tuple[str, ...]] = get_args(get_args(Effort)[0])
AUTO: Final = "auto"
_MOST_DIGITS: Final = 7
#: What each choice means to a person.
_MEANING: Final = {
    AUTO: "the model's own default",
    "none": "answers at once, where the model can",
    "low": "quick and cheap",
    "high": "for hard problems: slower, and more tokens",
    "max": "as hard as the model can",
}


async def change_effort(session: Session, argument: str) -> Reply:
    """Offer the levels, or have the model think so hard from now on: LEVEL, a number of tokens, or auto."""
    current = session.config.llm.effort
    if not argument:
        return _offer(current)
    word = argument.lower()
    is_number = word.isascii() and word.isdecimal() and len(word) < _MOST_DIGITS
    if word != AUTO and word not in LEVELS and not is_number:
        text = f"There is no effort {argument!r}. Choose {AUTO}, {', '.join(LEVELS)}, or a number of tokens."
        return Reply.error(text)
    given = int(word) if is_number else word
    asked = None if word == AUTO else msgspec.convert(given, decodable(Effort))
    await session.use_effort(asked)
    return Reply(text=f"Effort: {_shown(asked)}")


def _shown(effort: Effort | None) -> str:
    if isinstance(effort, int):
        return f"at most {effort:,} tokens of thinking"
    level = effort or AUTO
    return f"{level} ({_MEANING[level]})" if level in _MEANING else level


def _offer(current: Effort | None) -> Reply:
    items = tuple(
        MenuItem(
            f"/effort {level}",
            level,
            _MEANING.get(level, ""),
            is_current=level == (current or AUTO),
        )
        for level in (AUTO, *LEVELS)
    )
    menu = Menu("How hard should the model think?", items)
    return Reply(text=f"Effort: {_shown(current)}", menu=menu)


NO_PLAN = "There is no plan. In the mode plan (Shift-Tab, or /mode plan) the model only reads, and ends with one."
KEEP_PLAN = "Say what the plan should change; the mode stays plan."
PLAN_USAGE = "Usage: /plan, /plan go, /plan go ask, /plan go auto or /plan keep"
_CHOICES: tuple[tuple[str, Mode], ...] = (("", "accept-edits"), (" ask", "ask"), (" auto", "auto"))
_MODE_OF: dict[str, Mode] = {"ask": "ask", "auto": "auto"}


async def show_plan(session: Session, argument: str) -> Reply:
    """Show the plan, or go ahead with it: with edits accepted, in ask or in auto."""
    plan = _plan_of(session)
    match argument.lower().split():
        case []:
            notes = (
                "",
                "/plan go carries it out with edits accepted, /plan go ask in ask, /plan go auto in auto.",
            )
            return Reply(text=plan or NO_PLAN, notes=notes if plan else ())
        case ["keep"]:
            return Reply(text=KEEP_PLAN)
        case ["go"] | ["go", "accept-edits" | "ask" | "auto"] as words:
            if not plan:
                return Reply.error(NO_PLAN)
            session.mode = _MODE_OF.get(words[-1], "accept-edits")
            return Reply(shared=UserMessage.of(GO_AHEAD + plan))
        case _:
            return Reply.error(PLAN_USAGE)


def offer_plan() -> Reply:
    """Ask what is to happen with a plan: choosing sends a line, as if typed; closing the menu keeps planning."""
    items = [MenuItem(f"/plan go{word}", f"yes, in {mode}", MODES[mode]) for word, mode in _CHOICES]
    items.append(MenuItem("/plan keep", "no, keep planning", "say what to change"))
    return Reply(menu=Menu("Go ahead with this plan?", tuple(items), is_numbered=False))


def _plan_of(session: Session) -> str:
    """Return the newest plan: the one that was just proposed, or what the transcript holds."""
    facts = session.journal.replay
    newest = proposed_plan(facts.last_answer) if session.mode == "plan" else ""
    return newest or facts.plan
