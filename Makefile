# make demo, make test: the two commands. Both set up first; once set up, no network is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-full lint browser bench lock clean

# The second part continues where an earlier one was stopped.
demo: $(READY)
	$(BIN)/python examples/trial.py
	$(BIN)/python examples/doctor_bandit.py
	$(BIN)/private-bandits reproduce --out demo-output

# Matrices are small and tests run side by side: more threads for one of them only wait.
test test-full: export OPENBLAS_NUM_THREADS = 1
# Tests start dozens of processes: none of them compiles the package anew.
test test-full: export PYTHONDONTWRITEBYTECODE =

# A test that hangs ends with its traceback after five minutes. Who is done helps out.
test: lint browser
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not full" -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

# The same tests and the full counts of every fault and statistical test. Some take minutes.
test-full: lint browser
	$(BIN)/python -m pytest -n auto --dist worksteal --durations=10

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# A browser for the tests of the report, where it may be installed.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name >/dev/null && exit 0; done; \
	echo "Installing Chromium for the tests of the report"; \
	{ apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } \
	  >/dev/null 2>&1 || echo "NOT possible here: the report will not be looked at in a browser"

bench: $(READY)
	$(BIN)/python benchmarks/live.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/design.py
	$(BIN)/python benchmarks/placement.py
	$(BIN)/python benchmarks/contextual.py
	$(BIN)/python benchmarks/contextual_rivals.py
	$(BIN)/python benchmarks/live_contextual.py
	$(BIN)/python benchmarks/rivals.py
	$(BIN)/python benchmarks/tight.py
	$(BIN)/python benchmarks/service.py

# Wheels only, each with its hash. virtualenv stands in where Python comes without ensurepip.
$(READY): requirements/lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV): a minute or two, 1.5 GB"
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
	  rm -rf $(VENV) && \
	  $(PYTHON) -m pip install --quiet --target $(VENV)-tool virtualenv && \
	  PYTHONPATH=$(VENV)-tool $(PYTHON) -m virtualenv --quiet $(VENV) && rm -rf $(VENV)-tool; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	touch $@

# Writes the lock anew; pip-tools lives in an environment of its own.
lock:
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install --quiet pip-tools
	$(VENV)-lock/bin/pip-compile --extra all --extra dev --generate-hashes --allow-unsafe --strip-extras \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --no-header --no-annotate \
	  --upgrade --output-file requirements/lock.txt pyproject.toml
	rm -rf $(VENV)-lock

clean:
	rm -rf $(VENV) $(VENV)-tool $(VENV)-lock demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
