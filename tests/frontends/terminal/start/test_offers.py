"""What is offered at the first start, in words, and in which order."""

from msgspec.structs import replace

from ybs.commands.model_choices import ModelChoice
from ybs.frontends.terminal.start.offers import PAGE, StartOffer, detail_of, meant, order


def test_what_was_found_is_said_in_a_few_words() -> None:
    ollama = ModelChoice(kind="server", model="m", settings={}, place="ollama")
    sized = replace(ollama, size_bytes=9_000_000_000)
    file = ModelChoice(kind="file", model="own", settings={}, size_bytes=1_000_000)
    key = ModelChoice(kind="key", model="m", settings={}, place="google", variable="GOOGLE_API_KEY")
    for choice, said in (
        (ollama, "ollama, running here"),
        (sized, "ollama, running here, 9.0 GB"),
        (replace(sized, is_large=True), "ollama, 9.0 GB, too large for this machine"),
        (replace(sized, is_far=True), "ollama, runs in its cloud, not on this machine"),
        (replace(sized, owner="mallory"), "ollama, another user's (mallory)"),
        (replace(file, kind="starter"), "the starter model, on this machine"),
        (file, "a file on this machine, 1.0 MB"),
        (key, "google, key found in GOOGLE_API_KEY"),
    ):
        assert detail_of(choice) == said


def test_many_local_models_leave_room_for_the_rest() -> None:
    local = [StartOffer(name=f"m{n}") for n in range(20)]
    others = [StartOffer(name="key"), StartOffer(name="another")]
    names = [offer.name for offer in order(local, others)]
    assert names[:PAGE] == [*(f"m{n}" for n in range(PAGE - 2)), "key", "another"]
    assert sorted(names) == sorted(each.name for each in [*local, *others])
    crowded = order(local, [StartOffer(name=f"k{n}") for n in range(PAGE)])
    assert [offer.name for offer in crowded[:4]] == ["m0", "m1", "m2", "m3"]


def test_a_number_a_name_or_a_clear_beginning_means_an_offer() -> None:
    names = ["qwen3:14b", "qwen3", "a provider…", "another server…", "download the starter model"]
    details = ["ollama", "ollama", "anthropic or openai, with a key", "by its address", "1.1 GB"]
    for word, place in (
        ("1", 0),
        ("5", 4),
        ("QWEN3", 1),
        ("qwen3:", 0),
        ("a p", 2),
        ("prov", 2),
        ("Anoth", 3),
        ("server", 3),
        ("starter", 4),
        ("openai", 2),
        ("address", 3),
    ):
        assert meant(word, names, details) == place, word
    for word in ("0", "6", "²", "a", "qwen", "ollama", "rver", "anthr", "m", "by", "nothing"):
        assert meant(word, names, details) is None, word
