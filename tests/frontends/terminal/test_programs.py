"""Subcommands that run on the terminal of a chat."""

from typing import Any

import pytest

from scripted import OpenAIServer
from ybs.frontends.terminal.programs import run_subcommand
from ybs.security import launcher
from ybs.security.sandbox.launch import Launch
from ybs.session.options import Options
from ybs.session.session import Session
from ybs.testing import ScriptedModel


@pytest.mark.integration
async def test_the_machine_is_checked_for_the_model_in_use(project, capfd):
    async with OpenAIServer([], models=("here",)) as server:
        options = {"provider": "openai", "endpoint": server.url, "model": "gone"}
        async with Session(Options.of(project, options)) as session:
            await run_subcommand("doctor", session, has_input=False)
    assert f"gone is not available at {server.url}" in capfd.readouterr().out


@pytest.mark.integration
async def test_an_address_that_was_named_alone_is_checked_without_the_key_of_a_variable(
    project, capfd, monkeypatch
):
    key = "sk-" + "x" * 20
    monkeypatch.setenv("OPENAI_API_KEY", key)
    async with OpenAIServer([], models=("here",)) as server:
        options = {"endpoint": server.url, "model": "here"}
        async with Session(Options.of(project, options)) as session:
            await run_subcommand("doctor", session, has_input=False)
        asked = [each.headers for each in server.requests]
    assert f"running at {server.url}" in capfd.readouterr().out
    assert key not in str(asked)


@pytest.mark.integration
async def test_a_login_in_the_address_of_the_model_is_in_no_command_line(
    project, capfd, monkeypatch
):
    started, start = list[Launch](), launcher.start_in_loop

    async def noting(launch: Launch, **how: Any) -> Any:
        started.append(launch)
        return await start(launch, **how)

    monkeypatch.setattr(launcher, "start_in_loop", noting)
    monkeypatch.setenv("YBS_PROVIDER", "mistral")
    password = "p" * 12
    async with OpenAIServer([], models=("here",)) as server:
        address = server.url.replace("://", f"://me:{password}@")
        options = {"provider": "openai", "endpoint": address, "model": "here"}
        async with Session(Options.of(project, options)) as session:
            await run_subcommand("doctor", session, has_input=False)
    (words,) = [each.argv for each in started]
    assert "doctor" in words
    assert password not in str(words)
    assert f"running at {server.url}" in capfd.readouterr().out


@pytest.mark.integration
async def test_with_no_model_chosen_the_machine_is_checked_as_the_settings_say(project, capfd):
    async with Session(Options.of(project, {"model": ScriptedModel([])})) as session:
        await run_subcommand("doctor", session, has_input=False)
    assert "missing  provider" in capfd.readouterr().out
