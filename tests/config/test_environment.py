from rows import every_row
from ybs.config.layers import is_setting, meant_by, path_of, variables_of


@every_row(
    ("variable", "path"),
    [
        ("YBS_MODEL", ("llm", "model")),
        ("YBS_PROVIDER", ("llm", "provider")),
        ("YBS_ENDPOINT", ("llm", "endpoint")),
        ("YBS_LLM__MAX_TOKENS", ("llm", "max_tokens")),
        ("YBS_TOOLS__BUILTIN__RUN_SHELL__ENABLED", ("tools", "builtin", "run_shell", "enabled")),
        ("YBS_PROVIDERS__WORK__ENDPOINT", ("providers", "work", "endpoint")),
        ("YBS_MCPSERVERS__X", ("mcpServers", "x")),
        ("YBS_HOME", None),
        ("YBS_PROFILE", None),
        ("YBS_LLM", None),
        ("YBS_LLM_MODEL", None),
        ("YBS_LLM__", None),
        ("YBS___MODEL", None),
        ("YBS_NOPE__MODEL", None),
    ],
)
def test_a_variable_names_a_setting_or_none(variable: str, path: tuple[str, ...] | None):
    assert path_of(variable) == path


def test_only_variables_that_are_set_and_ours_are_looked_at():
    environ = {"YBS_LLM__MODEL": "a", "YBS_MODEL": "b", "YBS_UI__COLOR": "", "MODEL": "c"}
    assert variables_of(environ) == ["YBS_MODEL", "YBS_LLM__MODEL"]


def test_one_underscore_too_few_is_recognised():
    assert meant_by("YBS_LLM_MODEL") == "YBS_LLM__MODEL"
    assert meant_by("YBS_CONTEXT_MAX_TOKENS") == "YBS_CONTEXT__MAX_TOKENS"
    assert meant_by("YBS_HOME") is None
    assert meant_by("YBS_SANDBOX") is None


def test_a_section_is_no_setting():
    assert is_setting(("llm", "model"))
    assert is_setting(("safety", "blocked_commands"))
    assert not is_setting(("llm",))
    assert not is_setting(("tools", "builtin", "run_shell"))
    assert not is_setting(("llm", "nope"))
    assert not is_setting(("hooks", "x"))
