"""`ybs agents list` and `check`: the kinds of sub-agents that sessions in this folder have."""

from typing import TYPE_CHECKING

from ybs.frontends.headless.output import tell, warn, write_json, write_table
from ybs.frontends.layout import clipped
from ybs.session.settings import environment_of, load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.conductor.kind_files import Kinds
    from ybs.conductor.kinds import Kind
    from ybs.config.layers import Loaded
    from ybs.session.options import Options

_MOST_DESCRIBED = 70
_BUILT_IN = "built in"


def agents(arguments: "Namespace", options: "Options") -> int:
    """Do what the arguments ask for and return the exit code."""
    run = check_agents if arguments.action == "check" else list_agents
    return run(options, is_json=arguments.format == "json")


def list_agents(options: "Options", *, is_json: bool) -> int:
    """Print the kinds: what each is for, what it may do, and where it is from."""
    loaded, kinds = _found(options)
    if is_json:
        write_json([_data(kind) for kind in kinds.by_name.values()])
    else:
        write_table(
            [
                (
                    kind.name,
                    _rights(kind),
                    kind.place or _BUILT_IN,
                    clipped(kind.description, _MOST_DESCRIBED),
                )
                for kind in kinds.by_name.values()
            ]
        )
    warn(loaded.warnings)
    return 0


def check_agents(options: "Options", *, is_json: bool) -> int:
    """Print what is wrong with the files of kinds. 1: one cannot be used."""
    loaded, kinds = _found(options)
    is_wrong = any(each.is_fatal for each in kinds.problems)
    if is_json:
        problems = [
            {"place": each.place, "problem": each.why, "used": not each.is_fatal}
            for each in kinds.problems
        ]
        write_json({"agents": [_data(k) for k in kinds.by_name.values()], "problems": problems})
    else:
        write_table([("ok", k.name, k.place or _BUILT_IN) for k in kinds.by_name.values()])
        for each in kinds.problems:
            tell(f"{each.place}{' is not used' * each.is_fatal}: {each.why}")
    warn(loaded.warnings)
    return int(is_wrong)


def _found(options: "Options") -> "tuple[Loaded, Kinds]":
    from ybs.conductor.kind_files import find_kinds

    loaded = load_settings(options)
    return loaded, find_kinds(loaded, environment_of(options, loaded).folder)


def _rights(kind: "Kind") -> str:
    if not kind.may_change:
        return "reads"
    if kind.acp is not None:
        return "changes a copy"
    return "may change files" if kind.mode is None else f"mode {kind.mode}"


def _data(kind: "Kind") -> dict[str, object]:
    budget = kind.budget
    limits = {"steps": budget.steps, "tokens": budget.tokens}
    return {
        "name": kind.name,
        "description": kind.description,
        "place": kind.place or _BUILT_IN,
        "tools": kind.tools,
        "mode": kind.mode,
        "may_change": kind.may_change,
        "model": kind.model,
        "acp": None if kind.acp is None else kind.acp.command or kind.acp.preset,
        "budget": {**limits, "cost_usd": budget.cost_usd, "seconds": budget.seconds},
    }
