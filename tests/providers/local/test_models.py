"""Which model files there are, and which one a name means."""

from pathlib import Path

import pytest

from hosts import this_host
from ybs.config.schema import Config, LlmSettings
from ybs.core.errors import ConfigError
from ybs.providers.local import STARTER_NAME, models
from ybs.providers.registry import create_model


def test_the_starter_is_installed_only_when_it_is_whole(starter: Path):
    assert models.starter_installed(this_host())
    starter.write_bytes(b"half")
    assert not models.starter_installed(this_host())
    starter.unlink()
    assert not models.starter_installed(this_host())


def test_no_folder_means_no_models():
    assert models.list_models(this_host()) == []


def test_models_are_found_by_name_by_path_and_as_the_starter(starter: Path, tmp_path: Path):
    other = models.models_folder(this_host()) / "other-7b.gguf"
    other.write_bytes(b"GGUF")
    elsewhere = tmp_path / "mine.gguf"
    elsewhere.write_bytes(b"GGUF")
    assert models.find_model(this_host(), STARTER_NAME, STARTER_NAME) == starter
    assert models.find_model(this_host(), "other-7b", STARTER_NAME) == other
    assert models.find_model(this_host(), str(elsewhere), STARTER_NAME) == elsewhere
    assert [file.name for file in models.list_models(this_host())] == ["other-7b", starter.stem]


def test_a_name_is_a_path_only_where_it_begins_or_ends_like_one(
    starter: Path, project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(project)
    (project / "data").mkdir()
    (project / "data/assistant").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match="There is no local model 'data/assistant'"):
        models.find_model(this_host(), "data/assistant", STARTER_NAME)
    found = models.find_model(this_host(), "./data/assistant", STARTER_NAME)
    assert found == project.resolve() / "data/assistant"


def test_folders_and_links_to_nowhere_are_no_models(starter: Path):
    (starter.parent / "folder.gguf").mkdir()
    (starter.parent / "gone.gguf").symlink_to("/nowhere/model.gguf")
    (starter.parent / "link.gguf").symlink_to(starter)
    assert [file.name for file in models.list_models(this_host())] == ["link", starter.stem]


def test_the_files_of_a_model_are_its_own_and_those_of_its_download(starter: Path):
    part, mark = starter.with_name("m.gguf.part"), starter.with_name("m.gguf.etag")
    for path in (part, mark, starter.with_name("m.gguf.txt")):
        path.write_bytes(b"")
    assert models.files_of(this_host(), "m") == [part, mark]
    (starter.parent / "gone.gguf").symlink_to("/nowhere/model.gguf")
    assert models.files_of(this_host(), "gone") == [starter.parent / "gone.gguf"]
    assert models.files_of(this_host(), f"../models/{starter.stem}") == []


def test_an_unknown_name_lists_what_there_is(starter: Path):
    with pytest.raises(ConfigError, match=starter.stem):
        models.find_model(this_host(), "gpt-99", STARTER_NAME)


def test_a_path_without_a_file_is_named():
    with pytest.raises(ConfigError, match=r"/nowhere/m\.gguf"):
        models.find_model(this_host(), "/nowhere/m.gguf", STARTER_NAME)


def test_a_file_is_opened_by_its_path_only_where_the_person_names_it(project: Path):
    file = project / "mine.gguf"
    file.write_bytes(b"GGUF")
    host, path = this_host(), str(file)
    for name in (path, f"./{file.name}", "~/x", f"a/../{file.name}", f"sub/{file.name}"):
        with pytest.raises(ConfigError, match="has to be the plain name of a model"):
            create_model(host, Config(), provider="llamacpp", model=name)
    own = Config(llm=LlmSettings(provider="llamacpp", model=path))
    assert create_model(host, own).name == path
    named = create_model(host, Config(), provider="llamacpp", model=path, is_persons=True)
    assert named.name == path


@pytest.mark.parametrize("name", ["data/assistant", "qwen/qwen3", "a/b.GGUF"])
def test_a_name_that_a_project_may_give_is_no_path(
    starter: Path, tmp_path: Path, monkeypatch, name
):
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="There is no local model"):
        models.find_model(this_host(), name, STARTER_NAME)
    assert models.find_model(this_host(), f"./{name}", STARTER_NAME) == tmp_path / name


async def test_removing_deletes_the_model_and_what_is_left_of_fetching_it(starter: Path):
    (models.parts_folder(this_host()) / "01").mkdir(parents=True)
    starter.with_name(f"{starter.name}.part").write_bytes(b"GG")
    assert await models.remove_starter(this_host())
    assert models.list_models(this_host()) == []
    assert not models.parts_folder(this_host()).exists()
    assert list(starter.parent.iterdir()) == []
    assert not await models.remove_starter(this_host())
