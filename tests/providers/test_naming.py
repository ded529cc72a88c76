"""A server that only has an address is called by it, and never by the name of a company that is not asked."""

from rows import every_row
from ybs.config.host import Host
from ybs.config.schema import Config, Endpoint, Llm
from ybs.providers.registry import create_model, shown_name

EMPTY = Host.of({"HOME": "/nonexistent"})
LOCAL = "http://127.0.0.1:8080/v1"


@every_row(
    ("name", "config", "shown"),
    [
        ("openai", Config(llm=Llm(endpoint=LOCAL)), "127.0.0.1:8080"),
        ("openai", Config(llm=Llm(provider="openai", endpoint=LOCAL)), "127.0.0.1:8080"),
        ("openai", Config(providers={"openai": Endpoint(endpoint=LOCAL)}), "127.0.0.1:8080"),
        ("openai", Config(llm=Llm(endpoint="https://u:p@far.example/v1")), "far.example"),
        ("openai", Config(llm=Llm(endpoint="https://api.openai.com/v1")), "openai"),
        ("openai", Config(llm=Llm(provider="openai")), "openai"),
        ("openai", Config(), "openai"),
        ("openai", Config(llm=Llm(provider="ollama", endpoint=LOCAL)), "openai"),
        ("ollama", Config(llm=Llm(provider="ollama", endpoint=LOCAL)), "ollama"),
        ("shed", Config(providers={"shed": Endpoint(endpoint=LOCAL)}), "shed"),
        ("in-process", Config(llm=Llm(endpoint=LOCAL)), "in-process"),
    ],
)
def test_a_server_is_called_by_its_name_or_by_its_address(name: str, config: Config, shown: str):
    assert shown_name(name, config) == shown


def test_errors_call_it_by_its_address_too():
    given = Config(llm=Llm(endpoint=LOCAL, model="m"))
    assert create_model(EMPTY, given)._client.site.name == "127.0.0.1:8080"
    theirs = Config(llm=Llm(provider="openai", api_key="sk-x", model="m"))
    assert create_model(EMPTY, theirs)._client.site.name == "openai at api.openai.com"
