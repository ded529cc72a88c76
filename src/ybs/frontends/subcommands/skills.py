"""`ybs skills list`, `check` and `new`: the skills that sessions in this folder have."""

from typing import TYPE_CHECKING

from ybs.config import private_file
from ybs.config.host import Host
from ybs.frontends.headless.output import tell, warn, write, write_json, write_table
from ybs.session.settings import environment_of, load_settings

if TYPE_CHECKING:
    from argparse import Namespace

    from ybs.session.options import Options
    from ybs.tools.skills import Skill

_MOST_DESCRIBED = 70
_NEW = """\
---
name: {name}
description: Say here what the skill does and when to use it. This line is all that a model knows of the skill before it loads it.
---
Write here what the model is to do, step by step. Files in this folder, such as references/details.md or scripts/run.py, are read or run when these words
name them.
"""


def skills(arguments: "Namespace", options: "Options") -> int:
    """Do what the arguments ask for and return the exit code."""
    if arguments.action == "new":
        return new_skill(options.host, arguments.name)
    run = check_skills if arguments.action == "check" else list_skills
    return run(options, is_json=arguments.format == "json")


def list_skills(options: "Options", *, is_json: bool) -> int:
    """Print the skills."""
    from ybs.core.cutting import shortened

    loaded = load_settings(options)
    skills = environment_of(options, loaded).skills
    if is_json:
        write_json([_data(skill) for skill in skills.by_name.values()])
    else:
        write_table(
            [
                (skill.name, skill.place, shortened(skill.description, _MOST_DESCRIBED))
                for skill in skills.by_name.values()
            ]
        )
    warn(loaded.warnings)
    return 0


def _data(skill: "Skill") -> dict[str, object]:
    return {
        "name": skill.name,
        "description": skill.description,
        "place": skill.place,
        "offered_to_the_model": skill.is_offered,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed_tools": skill.allowed_tools,
        "sub_agent": None if skill.fork is None else skill.fork.kind or "general",
    }


def check_skills(options: "Options", *, is_json: bool) -> int:
    """Print what can be used, what does not fit the format or has no effect, commands included, and what cannot be used. 1: something cannot."""
    from ybs.commands.custom import templates

    loaded = load_settings(options)
    environment = environment_of(options, loaded)
    skills = environment.skills
    left_out = list[str]()
    commands = templates(loaded, environment.folder, left_out.append)
    idle = {each.place: each.idle for each in commands if each.idle}
    if is_json:
        found = [{**_data(each), "remarks": each.remarks} for each in skills.by_name.values()]
        wrong = [{"place": each.place, "problem": each.why} for each in skills.unusable]
        write_json({"skills": found, "problems": wrong, "commands": idle})
    else:
        write_table([("ok", each.name, each.place) for each in skills.by_name.values()])
        for skill in skills.by_name.values():
            for remark in skill.remarks:
                tell(f"{skill.place}: {remark}")
        for place, names in idle.items():
            tell(f"{loaded.host.short(place)}: without effect in ybs: {', '.join(names)}")
        for each in skills.unusable:
            tell(f"{each.place} cannot be used: {each.why}")
        if not skills.by_name and not skills.unusable:
            tell("No skills were found; `ybs skills new NAME` makes one.")
    warn((*loaded.warnings, *left_out))
    return int(bool(skills.unusable or left_out))


def new_skill(host: Host, name: str) -> int:
    """Make a skill in the person's folder. 1: it is there already; 2: that cannot be its name."""
    from ybs.tools.skills import FILE, is_name

    if not is_name(name):
        tell(
            f"ybs: {name!r} cannot be the name of a skill: it has lower-case letters, digits and single hyphens, 64 at most."
        )
        return 2
    file = host.config_folder / "skills" / name / FILE
    if file.exists():
        tell(f"ybs: {file} is there already, and is not overwritten.")
        return 1
    private_file.replace(file, _NEW.format(name=name).encode())
    write(f"Made {file}. Write in it what the skill is for and what the model is to do.")
    return 0
