"""The other kinds of project, and what runs tasks whatever the language."""

from pathlib import Path

from context.kinds.trees import commands_of, told
from rows import every_row
from ybs.context.kinds.kind import VERBS
from ybs.context.kinds.table import EXTRAS, ROWS


@every_row(
    "files, line",
    [
        ({"Cargo.toml": "[lints.clippy]"}, 'Rust (cargo): test "cargo test", lint "cargo clippy", build "cargo build"'),
        ({"go.mod": "", ".golangci.yml": ""}, 'Go: test "go test ./...", lint "golangci-lint run", build "go build ./..."'),
        ({"build.gradle": "spotless {}", "gradlew": "", "pom.xml": ""},
         'Java (Gradle): test "./gradlew test", lint "./gradlew spotlessCheck", build "./gradlew build"'),
        ({"pom.xml": "", "mvnw": ""}, 'Java (Maven): test "./mvnw test", build "./mvnw package"'),
        ({"build.gradle.kts": 'kotlin("jvm")'}, 'Kotlin (Gradle): test "gradle test", build "gradle build"'),
        ({"A.sln": "", "b/B.csproj": ""}, 'C# (dotnet): test "dotnet test", build "dotnet build"'),
        ({"Gemfile": "", ".rspec": "", ".rubocop.yml": ""},
         'Ruby (bundler): test "bundle exec rspec", lint "bundle exec rubocop"'),
        ({"Gemfile": "", "Rakefile": "task :test do\n  task :lint"}, 'Ruby (bundler): test "bundle exec rake test"'),
        ({"a.gemspec": "", "Rakefile": "Minitest::TestTask.create"}, 'Ruby: test "rake test"'),
        ({"Rakefile": "RSpec::Core::RakeTask.new(:unit)\ntask lint: [:a]"}, 'Ruby: test "rake unit", lint "rake lint"'),
        ({"Rakefile": "RuboCop::RakeTask.new\nRake::TestTask.new(:'test:x')"}, 'Ruby: test "rake test", lint "rake rubocop"'),
        ({"Gemfile": "", "bin/rails": ""}, 'Ruby (bundler): test "bin/rails test"'),
        ({"composer.json": '{"scripts": {"test": "x", "lint": ["y"], "setup": "z"}}'},
         'PHP (composer): test "composer test", lint "composer lint"'),
        ({"composer.json": "{}", "phpunit.xml.dist": "", "phpstan.neon": ""},
         'PHP (composer): test "vendor/bin/phpunit", lint "vendor/bin/phpstan analyse"'),
        ({"composer.json": "{}", "artisan": ""}, 'PHP (composer): test "php artisan test"'),
        ({"Package.swift": ""}, 'Swift: test "swift test", build "swift build"'),
        ({"mix.exs": "", ".credo.exs": ""}, 'Elixir (mix): test "mix test", lint "mix credo", build "mix compile"'),
        ({"pubspec.yaml": "sdk: flutter"}, 'Dart (Flutter): test "flutter test"'),
        ({"pubspec.yaml": ""}, 'Dart: test "dart test"'),
        ({"CMakeLists.txt": "enable_testing()", "src/a.cpp": ""},
         'C++ (CMake): test "ctest --test-dir build", build "cmake -B build && cmake --build build"'),
        ({"CMakeLists.txt": "project(x)"}, 'C/C++ (CMake): build "cmake -B build && cmake --build build"'),
        ({"meson.build": ""}, 'C/C++ (Meson): build "meson setup build && meson compile -C build"'),
        ({"meson.build": "test('a')", "a.c": "", "lib/meson.build": ""},
         'C (Meson): test "meson test -C build", build "meson setup build && meson compile -C build"'),
        ({"configure.ac": "", "Makefile.am": "TESTS = a", "CMakeLists.txt": ""},
         'C/C++ (Autotools): test "make check", build "autoreconf -fi && ./configure && make"'),
        ({"configure.ac": "", "Makefile.am": "", "a.c": ""}, 'C (Autotools): build "autoreconf -fi && ./configure && make"'),
        ({"Makefile": "TESTS =", "go.sum": "", "a.go": ""}, "Go"),
        ({"configure": "", "a.c": ""}, 'C: build "./configure && make"'),
        ({"Makefile": "check:\n", "src/a.c": ""}, 'C (Make): test "make check", build "make"'),
    ],
)  # fmt: skip
def test_a_kind_is_told_with_the_commands_of_its_tool(
    tmp_path: Path, files: dict[str, str], line: str
):
    assert told(tmp_path, files) == line


@every_row(
    "files, commands",
    [
        ({"Makefile": ".PHONY: test\ntest lint: x\nfmt::\n"}, "make test|make lint|make fmt"),
        ({"GNUmakefile": "tests:", "Makefile": "test:"}, "make tests"),
        ({"Makefile": "check:\nbuild: x"}, "make check|make build"),
        ({"justfile": "@test a='b': x\n[no-cd]\nfmt:\n# lint:\n"}, "just test|just fmt"),
        ({"Taskfile.yml": "tasks:\n # a\n  test:\n    cmds:\n      - lint:\n  lint: x\nvars:\n  build: y"},
         "task test|task lint"),
        ({"magefile.go": "func Test() error {\nfunc (x X) Lint() {\nfunc build() {"}, "mage test"),
        ({"script/test": "", "script/fmt.sh": ""}, "script/test|script/fmt.sh"),
        ({"Makefile": "lint:", ".pre-commit-config.yaml": "", "MODULE.bazel": ""},
         "bazel test //...|make lint|bazel build //..."),
        ({"run_tests.sh": "", "build.sh": ""}, "./run_tests.sh|./build.sh"),
        ({"Makefile": "test:", "justfile": "test:\nlint:", "Taskfile.yaml": "tasks:\n test:\n build:"},
         "make test|just lint|task build"),
    ],
)  # fmt: skip
def test_runners_come_first_whatever_the_language(
    tmp_path: Path, files: dict[str, str], commands: str
):
    assert (
        "|".join(dict(sorted(commands_of(tmp_path, files).items(), key=_place)).values())
        == commands
    )


def _place(command: tuple[str, str]) -> int:
    return VERBS.index(command[0])


def test_every_row_of_the_tables_is_in_order():
    names = {row.name for row in ROWS}
    assert not [extra for extra in EXTRAS if extra.name not in names or extra.verb not in VERBS]
    commands = [c for row in ROWS for c in row.commands.values()] + [e.command for e in EXTRAS]
    assert max(map(len, commands)) <= 60
    assert not [row for row in ROWS if row.commands.keys() - set(VERBS)]
