"""The command /profile: lists the named sets of settings, and goes on with one."""

from ybs.config.tree import is_object
from ybs.core.errors import YbsError
from ybs.session.reply import Menu, MenuItem, Reply
from ybs.session.session import Session

NONE = (
    "There are no profiles. A profile is a set of settings under `profiles` in your configuration, such as "
    '"profiles": {"review": {"safety": {"mode": "plan"}}}, or in that of a project that you trust.'
)


async def change_profile(session: Session, argument: str) -> Reply:
    """Offer the profiles, or go on with one."""
    if not argument:
        items = [
            MenuItem(
                line=f"/profile {name}",
                label=name,
                detail=", ".join(settings) if is_object(settings) else "",
                is_current=name == session.loaded.profile,
            )
            for name, settings in session.config.profiles.items()
        ]
        menu = Menu(title="Profiles", items=tuple(items)) if items else None
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
