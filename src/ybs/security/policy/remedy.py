"""What would allow a call that is asked about, for who can only start again. Each answer was tried, so it is true."""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from ybs.core.errors import ConfigError
from ybs.core.lazy import lazy
from ybs.core.remedies import Remedy

if TYPE_CHECKING:
    from ybs.config.schema import Mode
    from ybs.core.messages import ToolCall
    from ybs.security.policy.policy import Policy, Subject

#: Judges the call by another policy: whether it may run.
Judge: TypeAlias = "Callable[[Policy], bool]"
#: Looser and looser; `bypass` is named where nothing else is of use.
_MODES: "tuple[Mode, ...]" = ("accept-edits", "auto")
_GLOB_SIGN = lazy(r"[*?\[\]{},\\]")


class Trial:
    """A call that is asked about, to be judged again in other circumstances."""

    def __init__(
        self, policy: "Policy", call: "ToolCall", subject: "Subject", judge: "Judge"
    ) -> None:
        self._policy, self._call, self._subject, self._judge = policy, call, subject, judge

    def remedies(self) -> tuple[Remedy, ...]:
        """Return what would let the call run: a rule, the narrowest first, and a mode."""
        found = [Remedy("allow_call", rule) for rule in self._rules(network=False)][:1]
        if not found and self._subject.network:
            rules = self._rules(network=True)
            found = [Remedy("allow_call_with_network", rule) for rule in rules][:1]
        modes = [mode for mode in _MODES if self._is_allowed(mode=mode)]
        found += [Remedy("choose_mode", mode) for mode in modes[:1]]
        return tuple(found) or (Remedy("choose_mode", "bypass"),)

    def _rules(self, *, network: bool) -> Iterator[str]:
        for rule in self._candidates():
            if self._is_allowed(allow=(rule,), network=network):
                yield rule

    def _candidates(self) -> Iterator[str]:
        """Yield rules that may cover the call: itself, its file, its tool."""
        name, subject = self._call.name, self._subject
        if subject.command:
            yield f"{name}:{subject.command}"
        elif len(subject.paths) == 1:
            yield f"{name}:{_GLOB_SIGN().sub(_escaped, subject.paths[0])}"
            yield f"{name}:{subject.paths[0]}"  # a rule that must be exact escapes nothing
        yield name

    def _is_allowed(
        self, *, mode: "Mode | None" = None, allow: tuple[str, ...] = (), network: bool = False
    ) -> bool:
        try:
            return self._judge(self._policy.tried(mode=mode, allow=allow, network=network))
        except ConfigError:  # what is called so cannot be named in a rule
            return False


def _escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}"
