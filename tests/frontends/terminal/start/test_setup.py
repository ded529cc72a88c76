"""The first choice."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from msgspec.structs import replace

from hosts import this_host
from ybs.config.host import Host
from ybs.config.key_store import forget_key, stored_key
from ybs.config.settings_file import write_settings
from ybs.core.errors import ConfigError, YbsError
from ybs.frontends.terminal.start.setup import choose, find_offers, set_up
from ybs.providers.nearby import OLLAMA, NearModel, NearServer, ProbeResult
from ybs.providers.registry import chosen_provider, client_of
from ybs.trust.settings import load

NOTHING: Mapping[str, str] = {}
KEYS = {"OPENAI_API_KEY": "sk-" + "x" * 20}


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch, project: Path) -> list[NearServer]:
    """Give the list of the servers that are found; this machine's own are not asked."""
    found: list[NearServer] = []

    async def find(_environ: Mapping[str, str]) -> list[NearServer]:
        return found

    monkeypatch.setattr("ybs.providers.nearby.find_servers", find)
    return found


def server(*names: str) -> NearServer:
    models = tuple(NearModel(name=name) for name in names)
    return NearServer(
        title="ollama", provider="ollama", wire="ollama", endpoint=OLLAMA, models=models
    )


def reader(*lines: str | BaseException) -> Callable[[str], str]:
    left = list(lines)

    def read(_question: str) -> str:
        match left.pop(0) if left else EOFError():
            case str() as line:
                return line
            case error:
                raise error

    return read


def written(home: Path) -> Any:
    return msgspec.json.decode((home / ".config" / "ybs" / "config.json").read_bytes())


def host_with(environ: Mapping[str, str] = NOTHING) -> Host:
    """Return a host of the test's home folder whose environment has these variables alone."""
    return Host.of({"HOME": os.environ["HOME"], **environ})


def number_of(words: str, environ: dict[str, str] | None = None) -> str:
    names = [offer.name for offer in find_offers(host_with(environ or {}))]
    return str(next(number for number, name in enumerate(names, 1) if words in name))


def test_enter_takes_the_first_and_it_is_written_down_and_said(
    servers: list[NearServer], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.append(server("qwen3:14b", "small"))
    assert set_up(host_with(KEYS), reader(""))
    assert written(home) == {"llm": {"provider": "ollama", "model": "qwen3:14b"}}
    shown = capsys.readouterr().out
    assert "  1  qwen3:14b" in shown
    assert "ollama, running here" in shown
    assert "openai, key found in OPENAI_API_KEY" in shown
    assert KEYS["OPENAI_API_KEY"] not in shown
    said = "qwen3:14b, ollama. Saved in ~/.config/ybs/config.json; change it with `ybs setup` or /model.\n"
    assert said in shown
    assert shown.endswith("Run `ybs` in the folder of a project to begin.\n")


def test_enter_never_takes_another_users_server(
    servers: list[NearServer], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.append(replace(server("theirs"), owner="mallory"))
    assert choose(host_with(), reader("", "q")) is None
    shown = capsys.readouterr().out
    assert "ollama, another user's (mallory)" in shown
    assert "running here" not in shown
    names = [offer.name for offer in find_offers(host_with(KEYS))]
    assert (names[0] != "theirs", names[-1]) == (True, "theirs")
    servers.append(server("own"))
    assert choose(host_with(), reader("")) == {"llm.provider": "ollama", "llm.model": "own"}
    assert choose(host_with(), reader("theirs")) == {
        "llm.provider": "ollama",
        "llm.model": "theirs",
    }


def test_a_number_or_a_name_chooses_and_nonsense_does_not(
    servers: list[NearServer], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.append(server("qwen3:14b", "small"))
    assert choose(host_with(), reader("0", "99", "x", "-1", "m", "²", "9" * 5000, "2")) == {
        "llm.provider": "ollama",
        "llm.model": "small",
    }
    refused = "Please type a number from 1 to 5, the beginning of a name, or q."
    assert capsys.readouterr().out.count(refused) == 7
    assert choose(host_with(), reader("small")) == choose(host_with(), reader(" 2 "))
    assert not (home / ".config").exists()


@pytest.mark.integration
def test_leaving_writes_nothing_at_every_question(servers: list[NearServer], home: Path) -> None:
    servers.append(server("a", "b"))
    address = "http://127.0.0.1:1/v1"
    another = number_of("another server")
    for lines in ([], ["q"], ["QUIT"], [another], [another, address], [another, "", "q"]):
        for end in (EOFError(), KeyboardInterrupt()):
            assert set_up(host_with(), reader(*lines, end)) is False, lines
    assert not (home / ".config").exists()


def test_more_than_a_page_is_shown_on_m(
    servers: list[NearServer], capsys: pytest.CaptureFixture[str]
) -> None:
    servers.append(server(*(f"model-{n:02d}" for n in range(30))))
    chosen = choose(host_with(), reader("m", "m", "33"))
    shown = capsys.readouterr().out
    first, second, third = shown.split("  m  ")
    assert "another server" in first
    assert second.startswith("21 more")
    assert third.startswith("9 more")
    assert "m  -" not in shown
    assert " 33  model-29" in third
    assert chosen == {"llm.provider": "ollama", "llm.model": "model-29"}


def test_a_machine_with_nothing_is_told_the_three_ways_and_enter_looks_again(
    servers: list[NearServer], capsys: pytest.CaptureFixture[str]
) -> None:
    def read(_question: str) -> str:
        servers.append(server("new"))  # it was started meanwhile
        return ""

    assert choose(host_with(), read) == {"llm.provider": "ollama", "llm.model": "new"}
    shown = capsys.readouterr().out
    for way in ("download the starter model", "`ollama pull", "OPENAI_API_KEY"):
        assert way in shown


def test_who_has_a_model_is_told_which_and_enter_keeps_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def read(question: str) -> str:
        shown.append(question)
        return "2" if "1 or 2" in question else ""

    shown: list[str] = []
    assert set_up(host_with(), read, using="scripted, localhost:8901")  # from a chat
    said = capsys.readouterr().out
    assert said.startswith("In use: scripted, localhost:8901.\n\nWhich model should ybs use?")
    assert "Enter keeps the one in use" in shown[0]
    assert "No model was found" not in said
    assert "Run `ybs`" not in said
    assert written(home) == {"safety": {"ask_before_edits": True}}
    answers = (number_of("another server"), "http://127.0.0.1:1/v1", "m")
    assert set_up(host_with(), reader(*answers))
    capsys.readouterr()
    assert set_up(host_with(), reader(""))
    assert capsys.readouterr().out.startswith("In use: m, 127.0.0.1:1.\n")
    assert written(home)["llm"]["model"] == "m"


def test_incognito_offers_nothing_that_stays_and_local_only_nothing_far(
    servers: list[NearServer],
) -> None:
    servers.append(server("near", "far-cloud"))
    names = [
        offer.name for offer in find_offers(host_with(KEYS), is_incognito=True, only_here=True)
    ]
    assert names == ["near", "another server\u2026"]
    assert len(find_offers(host_with(KEYS), is_incognito=True)) == 5


def test_an_address_of_the_old_provider_is_forgotten(servers: list[NearServer], home: Path) -> None:
    answers = (number_of("another server"), "http://127.0.0.1:1/v1", "m")
    assert set_up(host_with(), reader(*answers))
    write_settings({"llm.endpoint": "http://127.0.0.1:1/v1"}, this_host().user_config_file)
    assert set_up(host_with(KEYS), reader("1"))
    assert "endpoint" not in written(home)["llm"]
    assert written(home)["llm"]["model"]


def test_a_server_at_an_address_is_asked_for_its_models(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names: list[str] = []

    async def ask(_endpoint: str, _key: str = "") -> ProbeResult:
        return ProbeResult("open", tuple(names))

    monkeypatch.setattr("ybs.providers.nearby.probe", ask)
    number, address = number_of("another server"), "http://127.0.0.1:1"
    taken: list[Any] = []
    for models, answers in (
        (["only"], []),
        (["a", "b"], ["9", "2"]),
        (["a", "b"], ["a"]),
        (["a", "b"], [""]),
        ([], [""]),
    ):
        names[:] = models
        chosen = choose(host_with(), reader(number, address, *answers))
        assert chosen is not None
        assert chosen["llm.provider"] == "127.0.0.1:1"
        assert chosen["providers.127.0.0.1:1.endpoint"] == address
        taken.append(chosen["llm.model"])
    assert taken == ["only", "b", "a", "a", None]
    assert "number or a name from the list" in capsys.readouterr().out


def test_what_is_no_address_is_asked_again_and_a_host_and_port_are_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    async def ask(endpoint: str, _key: str = "") -> ProbeResult:
        asked.append(endpoint)
        return ProbeResult("silent")

    monkeypatch.setattr("ybs.providers.nearby.probe", ask)
    number = number_of("another server")
    assert choose(host_with(), reader(number, "nonsense", "ftp://a", "http://a:x", "", "q")) is None
    shown = capsys.readouterr().out
    assert "'nonsense' is not a valid address" in shown
    assert (shown.count("is not a valid address"), shown.count("Which model"), asked) == (3, 0, [])
    for typed, whole in (
        ("127.0.0.1:18765", "http://127.0.0.1:18765"),
        ("localhost", "http://localhost"),
        ("box:8080/v1", "http://box:8080/v1"),
        ("models.example.org", "https://models.example.org"),
    ):
        chosen = choose(host_with(), reader(number, "nonsense", typed, "m"))
        assert chosen is not None
        assert chosen[f"providers.{chosen['llm.provider']}.endpoint"] == whole
        assert asked[-1] == whole
    assert (
        "No server answers at http://127.0.0.1:18765/v1 at the moment." in capsys.readouterr().out
    )


def test_the_download_asks_first_and_ctrl_c_there_leads_back_to_the_choice(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[bool] = []

    async def install(_host: Host, _progress: object, _route: object) -> Path:
        begun.append(True)
        raise KeyboardInterrupt

    monkeypatch.setattr("ybs.providers.local.fetch.install_starter", install)
    number = number_of("starter model")
    assert choose(host_with(), reader(number, "n", number, KeyboardInterrupt(), "q")) is None
    assert begun == []
    assert choose(host_with(), reader(number, "y", number, "yes", "q")) is None
    assert begun == [True, True], "each time the choice came again"
    assert "the next attempt continues from there" in capsys.readouterr().out


def test_the_starter_model_is_fetched_when_it_is_chosen(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def install(
        _host: Host, progress: Callable[[int, int, str], None], _route: object
    ) -> Path:
        progress(50, 100, "fetching")
        progress(50, 100, "fetching")
        progress(100, 100, "checking the hash")
        return home / "starter.gguf"

    async def fail(_host: Host, _progress: object, _route: object) -> Path:
        raise YbsError("the disk is full")

    number = number_of("starter model")
    monkeypatch.setattr("ybs.providers.local.fetch.install_starter", fail)
    assert set_up(host_with(), reader(number, "y", "q")) is False
    assert "the disk is full" in capsys.readouterr().out
    monkeypatch.setattr("ybs.providers.local.fetch.install_starter", install)
    for careless in (("",), ("  ",), ("\x1b",), ("x", "1", "q", "n")):
        assert set_up(host_with(), reader(number, *careless, "q")) is False, careless
    shown = capsys.readouterr().out
    assert shown.count("Please type y or n") == 3
    assert "fetching" not in shown
    assert shown.count("download the starter model") == 8, "the menu is printed again after each"
    assert not (home / ".config").exists()
    monkeypatch.setattr("ybs.providers.local.fetch.install_starter", install)
    assert set_up(host_with(), reader(number, "yes"))
    assert written(home)["llm"]["provider"] == "llamacpp"
    shown = capsys.readouterr().out
    assert shown.count("fetching: 50%") == 1
    for words in ("1.1 GB", "checking the hash", "~/starter.gguf"):
        assert words in shown


def test_a_file_that_cannot_be_written_is_an_error(home: Path) -> None:
    file = home / ".config" / "ybs" / "config.json"
    file.parent.mkdir(parents=True)
    file.write_text("{broken")
    with pytest.raises(ConfigError, match="Correct the file first"):
        set_up(host_with(KEYS), reader(""))


def test_a_key_of_another_provider_is_never_handed_on(home: Path) -> None:
    file = home / ".config" / "ybs" / "config.json"
    file.parent.mkdir(parents=True)
    before = '{"llm": {"provider": "anthropic", "api_key": "sk-ant-of-somebody"}}'
    file.write_text(before)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"holds llm\.api_key, which is not openai's"):
        set_up(host_with(KEYS), reader("1"))
    assert file.read_text() == before
    file.write_text(before.replace("anthropic", "openai"))
    assert set_up(host_with(KEYS), reader("1"))
    assert written(home)["llm"]["api_key"] == "sk-ant-of-somebody"


def test_what_goes_before_the_choice_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".ybs.json").write_text('{"llm": {"provider": "mistral"}}')
    assert set_up(host_with(KEYS), reader("1"))
    assert (
        f"But {home / '.ybs.json'} sets the provider to mistral and takes precedence."
        in capsys.readouterr().out
    )


def test_forty_columns_break_no_word(
    servers: list[NearServer], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    choose(host_with(), reader("q"))
    servers.append(server("qwen3:14b"))
    choose(host_with(KEYS), reader("q"))
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) < 40
    assert "  1  qwen3:14b" in lines
    assert "     ollama, running here" in lines


@pytest.mark.parametrize(
    ("answer", "asks", "words"),
    [("2", True, "Edits are asked about."), ("1", False, "Edits are made without asking.")],
)
def test_whether_edits_are_asked_about_is_asked_once(
    servers: list[NearServer],
    home: Path,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    asks: bool,
    words: str,
) -> None:
    servers.append(server("small"))
    assert set_up(host_with(), reader("", "", answer)), "Enter alone is no answer"
    assert written(home)["safety"] == {"ask_before_edits": asks}
    shown = capsys.readouterr().out
    assert "edits of files that the model has read" in shown
    assert words in shown
    assert set_up(host_with(), reader("", "", RuntimeError("nothing more is asked")))


def test_without_an_answer_about_edits_nothing_is_written(
    servers: list[NearServer], home: Path
) -> None:
    servers.append(server("small"))
    assert set_up(host_with(), reader("", KeyboardInterrupt()))
    assert "safety" not in written(home)


def test_a_key_is_asked_for_and_saved_for_its_provider_and_not_in_the_settings(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def take(_host: Host, _provider: object, _key: str) -> ProbeResult:
        return ProbeResult("open")

    monkeypatch.setattr("ybs.providers.nearby.try_key", take)
    key = KEYS["OPENAI_API_KEY"]
    number = number_of("a provider")
    assert set_up(host_with(), reader(number, "nobody", "2", "two words", key))
    assert written(home)["llm"]["provider"] == "openai"
    assert key not in (home / ".config" / "ybs" / "config.json").read_text()
    assert stored_key(this_host(), "openai", "api.openai.com") == key
    shown = capsys.readouterr().out
    assert "characters that a key cannot have" in shown
    assert "is sent to api.openai.com only" in shown
    assert any(offer.detail == "openai, key saved" for offer in find_offers(host_with()))
    assert choose(host_with(), reader(number_of("a provider"), "", "q")) is None, "Enter goes back"


@pytest.mark.parametrize("name", ["openai", "Groq"])
def test_a_providers_name_leads_to_its_key_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def take(_host: Host, _provider: object, _key: str) -> ProbeResult:
        return ProbeResult("open")

    def model_at(_address: str, key: str, _read: object) -> tuple[str, str]:
        return "m", key

    monkeypatch.setattr("ybs.providers.nearby.try_key", take)
    monkeypatch.setattr("ybs.frontends.terminal.start.setup._model_at", model_at)
    key = KEYS["OPENAI_API_KEY"]
    chosen = choose(host_with(), reader(name, key))
    assert chosen is not None
    assert (chosen["llm.provider"], chosen["llm.api_key"]) == (name.lower(), key)
    assert "10  " not in capsys.readouterr().out, "the list of providers is not printed"


def test_a_name_takes_the_key_that_is_there_already(capsys: pytest.CaptureFixture[str]) -> None:
    host = host_with({"OPENAI_API_KEY": KEYS["OPENAI_API_KEY"]})
    chosen = choose(host, reader("openai"))
    assert chosen is not None
    assert chosen["llm.provider"] == "openai"
    assert "llm.api_key" not in chosen


@contextmanager
def service(key: str) -> Generator[str]:
    """Serve a list of models to who sends this key, and give the address."""

    class Locked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.headers.get("authorization") == f"Bearer {key}"
            body = b'{"data": [{"id": "a-model"}]}' if is_known else b'{"error": "no"}'
            self.send_response(200 if is_known else 401)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Locked) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.integration
def test_a_server_that_is_chosen_by_its_address_gets_its_own_key_and_never_that_of_a_variable(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "corp-" + "k" * 20
    with service(own) as address:
        place = urlsplit(address).netloc
        answers = ("another server", address, own)
        assert set_up(host_with(KEYS), reader(*answers))
        assert f"is sent to http://{place} only" in capsys.readouterr().out
        assert written(home)["llm"] == {"provider": place, "model": "a-model"}
        host = host_with({**KEYS, "HOME": str(home)})
        config = load(host, folder=home).config
        assert client_of(host, chosen_provider(host, config), config)._secret == own
        forget_key(host, place, f"http://{place}")
        assert client_of(host, chosen_provider(host, config), config)._secret is None


def test_an_entry_with_a_key_for_another_address_is_not_turned_to_a_server_that_was_found(
    servers: list[NearServer], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"endpoint": "https://corp.example/v1", "api_key_env": "CORP_KEY"}
    place = "providers.127.0.0.1:1"
    before = {f"{place}.{name}": value for name, value in entry.items()}
    write_settings(before, this_host().user_config_file)
    answers = (number_of("another server"), "http://127.0.0.1:1", "m")
    with pytest.raises(ConfigError, match="Give that entry another name"):
        set_up(host_with(), reader(*answers))
    assert written(home) == {"providers": {"127.0.0.1:1": entry}}


@pytest.mark.integration
def test_a_key_is_tried_when_it_is_entered_and_a_refused_one_is_asked_for_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = KEYS["OPENAI_API_KEY"]
    number = number_of("a provider")
    with service(key) as address:
        host = host_with({"OPENAI_BASE_URL": address})
        assert choose(host, reader(number, "openai", "sk-wrong", "", "q")) is None, "given up"
        shown = capsys.readouterr().out
        assert "openai refused this key." in shown
        assert shown.count("a provider\u2026") == 2, "the menu is printed again"
        assert set_up(host, reader(number, "openai", "sk-wrong", key))
    place = urlsplit(address).netloc
    assert stored_key(host, "openai", f"http://{place}") == key
    assert stored_key(host, "openai", "api.openai.com") is None
    assert "not been tried" not in capsys.readouterr().out
    host = host_with({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert choose(host, reader(number, "openai", key)) is not None
    assert "So the key has not been tried." in capsys.readouterr().out


def test_a_preset_is_asked_for_its_models_with_the_key_that_was_given(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    asked: list[tuple[str, str]] = []

    async def ask(endpoint: str, key: str = "") -> ProbeResult:
        asked.append((endpoint, key))
        return ProbeResult("open", ("big", "small"))

    monkeypatch.setattr("ybs.providers.nearby.probe", ask)
    key = KEYS["OPENAI_API_KEY"]
    number = number_of("a provider")
    assert set_up(host_with(), reader(number, "groq", key, "small"))
    assert written(home)["llm"] == {"provider": "groq", "model": "small"}
    assert stored_key(this_host(), "groq", "api.groq.com") == key
    azure = "https://mine.openai.azure.com"
    assert set_up(host_with(), reader(number_of("a provider"), "azure", azure, key, "big"))
    assert written(home)["llm"] == {"provider": "azure", "model": "big", "endpoint": azure}
    assert stored_key(this_host(), "azure", "mine.openai.azure.com") == key
    assert asked == [("https://api.groq.com/openai/v1", key), (azure, key)]


def test_a_server_that_wants_a_key_is_told_from_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ask(_endpoint: str, key: str = "") -> ProbeResult:
        return ProbeResult("open", ("only",)) if key == "right" else ProbeResult("locked")

    monkeypatch.setattr("ybs.providers.nearby.probe", ask)
    number = number_of("another server")
    chosen = choose(host_with(), reader(number, "http://127.0.0.1:1", "wrong", "right"))
    assert chosen is not None
    assert (chosen["llm.api_key"], chosen["llm.model"]) == ("right", "only")
    shown = capsys.readouterr().out
    assert "answers, but it needs a key" in shown
    assert "refused this key" in shown
    chosen = choose(host_with(), reader(number, "http://127.0.0.1:1", "", "m"))
    assert chosen is not None
    assert "llm.api_key" not in chosen


def test_the_tools_of_the_web_are_offered_once_and_installed_on_a_yes(
    servers: list[NearServer], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.append(server("qwen3:14b"))
    folder = home / ".config/ybs/tools"
    assert set_up(host_with(), reader("", "1", ""))
    assert not folder.exists()
    assert set_up(host_with(), reader("", "y"))
    assert sorted(path.name for path in folder.iterdir()) == ["web_fetch.py", "web_search.py"]
    capsys.readouterr()
    assert set_up(host_with(), reader(""))
    assert "web_search" not in capsys.readouterr().out
