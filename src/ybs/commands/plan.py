"""The command /plan: shows the plan, and lets it be carried out in another mode."""

from ybs.commands.models import MODES
from ybs.config.schema import Mode
from ybs.core.messages import UserMessage
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session
from ybs.transcripts.facts import GO_AHEAD, proposed_plan

NONE = "There is no plan. In the mode plan (Shift-Tab, or /mode plan) the model only reads, and ends with one."
KEEP = "Say what the plan should change; the mode stays plan."
USAGE = "Usage: /plan, /plan go, /plan go ask, /plan go auto or /plan keep"
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
            return Reply(text=plan or NONE, notes=notes if plan else ())
        case ["keep"]:
            return Reply(text=KEEP)
        case ["go"] | ["go", "accept-edits" | "ask" | "auto"] as words:
            if not plan:
                return Reply.error(NONE)
            session.mode = _MODE_OF.get(words[-1], "accept-edits")
            return Reply(shared=UserMessage.of(GO_AHEAD + plan))
        case _:
            return Reply.error(USAGE)


def offer_plan() -> Reply:
    """Ask what is to happen with a plan: choosing sends a line, as if typed; closing the menu keeps planning."""
    items = [
        MenuItem(line=f"/plan go{word}", label=f"yes, in {mode}", detail=MODES[mode])
        for word, mode in _CHOICES
    ]
    items.append(
        MenuItem(line="/plan keep", label="no, keep planning", detail="say what to change")
    )
    return Reply(menu=Menu(title="Go ahead with this plan?", items=tuple(items), is_numbered=False))


def _plan_of(session: Session) -> str:
    """Return the newest plan: the one that was just proposed, or what the transcript holds."""
    facts = session.journal.replay
    newest = proposed_plan(facts.last_answer) if session.mode == "plan" else ""
    return newest or facts.plan
