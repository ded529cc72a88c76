# Every verb of this repository. `make` alone lists them.

VENV := .venv
BIN := $(VENV)/bin
DONE := $(VENV)/.done
export VENV
unexport VIRTUAL_ENV PYTHONHOME PYTHONPATH
unexport PYTHONDONTWRITEBYTECODE # each worker of the suite, and each ybs that it starts, would compile everything anew

.DEFAULT_GOAL := help
.PHONY: help run test check fix bench bench-router test-integration test-real test-slow test-scale test-versions cover docs pictures pictures-web lock clean
.DELETE_ON_ERROR:

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(DONE)/local $(DONE)/project ## set up what is missing, then do a real task with the embedded model
	$(BIN)/python scripts/demo.py $(ARGS)

# COVER=1 measures coverage on the way, with time to spare for it and more made-up examples. `make cover` and .ci/run do,
# so the suite runs once. The integration tests are part of what is measured; they wait for programs, so there are more
# workers than cores.
COVERAGE = $(if $(COVER),-m coverage run)
SLACK = $(if $(COVER),-m 'not (real or slow)' -n 4 --timeout 60 --hypothesis-profile thorough)
test: $(DONE)/test $(DONE)/project $(DONE)/programs ## set up what is missing, then run the quick suite (ARGS="-k words")
	@$(if $(COVER),rm -f .coverage .coverage.*)
	$(BIN)/python $(COVERAGE) -m pytest $(SLACK) $(ARGS)

check: $(DONE)/check $(DONE)/project ## format, lint, types, import contract, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python scripts/make_docs.py --check

fix: $(DONE)/check $(DONE)/project ## format, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DONE)/run $(DONE)/project ## measure speed, memory and prompt size, as ratios (ARGS="start task")
	$(BIN)/python bench/run.py $(ARGS)

bench-router: $(DONE)/run $(DONE)/project ## compare the router with other ways to choose a model, for some minutes (ARGS="--seeds 8")
	$(BIN)/python bench/run.py router_choice
	$(BIN)/python bench/router_simulator.py --seeds 64 --decisions 1000 $(ARGS)

test-integration: $(DONE)/test $(DONE)/project $(DONE)/programs ## the tests that start programs: git, the sandbox, terminals, servers
	$(BIN)/python -m pytest -m 'integration and not slow' --timeout 60 $(ARGS)

test-real: $(DONE)/local $(DONE)/test $(DONE)/project ## the tests that need the embedded model or a real server
	$(BIN)/python -m pytest -n 0 -m real --timeout 600 $(ARGS)

test-slow: $(DONE)/test $(DONE)/project $(DONE)/programs $(DONE)/synapse ## the tests that take longer than a moment
	$(BIN)/python -m pytest -m 'slow and not scale' -n 4 --timeout 240 $(ARGS)

test-scale: $(DONE)/test $(DONE)/project $(DONE)/programs ## the slow tests that measure time or memory at some size, one by one
	$(BIN)/python -m pytest -m scale -n 0 --timeout 240 $(ARGS)

test-versions: ## the quick suite with each Python from 3.11 on that is found here (PYTHONS="3.12 3.13")
	scripts/test_versions.sh $(PYTHONS)

cover: ## run the quick suite and the integration tests, and report what they do not reach
	@$(MAKE) --no-print-directory test COVER=1
	@$(MAKE) --no-print-directory cover-report

.PHONY: cover-report
FULLY_COVERED := src/ybs/core/*,src/ybs/security/*,src/ybs/git/*,src/ybs/tools/toolbox.py
cover-report: # 90 % of all; every line and branch of what guards the person's machine
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --fail-under 90
	$(BIN)/coverage report --include '$(FULLY_COVERED)' --omit src/ybs/git/committer.py --show-missing --fail-under 100

docs: $(DONE)/run $(DONE)/project ## write the generated pages of docs/ again
	$(BIN)/python scripts/make_docs.py

pictures: $(DONE)/run $(DONE)/test $(DONE)/project $(DONE)/programs ## take the pictures of docs/ again (ARGS="turn cost")
	$(BIN)/python scripts/pictures.py $(ARGS)

pictures-web: $(DONE)/run $(DONE)/test $(DONE)/project $(DONE)/programs ## take the pictures of docs/web.md again, with chromium
	$(BIN)/python scripts/pictures_web.py $(ARGS)

lock: ## solve requirements/ anew from pyproject.toml (needs uv; ARGS=--upgrade for the newest)
	scripts/lock.sh $(ARGS)

clean: ## remove everything that was built here, the virtual environment included
	rm -rf $(VENV) .venv-3.* build dist htmlcov .coverage .coverage.* .run
	rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. Each step leaves a file in $(DONE), so that a second run does nothing.
$(DONE)/venv:
	@scripts/setup.sh venv
	@mkdir -p $(DONE) && touch $@

$(DONE)/run $(DONE)/local $(DONE)/test $(DONE)/check: $(DONE)/%: requirements/%.txt | $(DONE)/venv
	@scripts/setup.sh install $<
	@touch $@

$(DONE)/programs: scripts/setup.sh tests/frontends/acp/npm/package-lock.json | $(DONE)/venv
	@scripts/setup.sh programs
	@touch $@

$(DONE)/synapse: requirements/synapse.txt | $(DONE)/venv
	@scripts/setup.sh synapse
	@touch $@

$(DONE)/project: pyproject.toml requirements/build.txt src/ybs/__init__.py | $(DONE)/venv
	@scripts/setup.sh project
	@touch $@
