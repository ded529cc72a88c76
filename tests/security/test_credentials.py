"""Where keys lie in a toolchain: near its top, in whatever folder."""

from pathlib import Path

from ybs.security.paths import credentials
from ybs.security.paths.credentials import in_toolchain


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def found(folder: Path, *, is_cache: bool = False) -> set[str]:
    places = in_toolchain(str(folder), is_cache=is_cache)
    return {str(Path(place).relative_to(folder)) for place in places}


def test_keys_are_found_near_the_top_and_neither_in_libraries_nor_through_a_link(tmp_path: Path):
    made(tmp_path, "npmrc", "readme", "a/b/.netrc", "lib/.netrc", "1/2/3/4/5/.env", "1/2/3/4/5/6/.env")  # fmt: skip
    (tmp_path / "again").symlink_to(tmp_path)
    assert found(tmp_path) == {"npmrc", "a/b/.netrc", "1/2/3/4/5/.env"}
    assert found(tmp_path, is_cache=True) == {"npmrc"}
    made(tmp_path, "a/.netrc")
    assert found(tmp_path, is_cache=True) == {"npmrc"}
    assert found(tmp_path / "nowhere") == set()


def test_a_folder_of_very_many_others_is_a_cache_and_the_search_ends(tmp_path, monkeypatch):
    made(tmp_path, "a/.netrc", "b/.netrc", "c/.netrc")
    monkeypatch.setattr(credentials, "_MOST_FOLDERS_IN_ONE", 3)
    assert len(found(tmp_path)) == 3
    monkeypatch.setattr(credentials, "_MOST_FOLDERS", 3)
    assert len(found(tmp_path)) == 2
    monkeypatch.setattr(credentials, "_MOST_FOLDERS_IN_ONE", 2)
    assert found(tmp_path) == set()
