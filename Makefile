# Every target works in a fresh clone: .venv is made from the lock file on first use. The lock is whole, so nothing is resolved: pip before
# 23.3 takes the newest `pydantic` for `pydantic[email]`, whatever is locked, and fails for want of its hash.
SHELL := /bin/bash
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$name; break; }; done)
VENV := .venv
RUN := $(VENV)/bin/python
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --quiet

.PHONY: help demo test coverage e2e proofs node image chart nightly check bench dist screenshots lock clean
help:
	@echo "make demo    five scenarios with kubectl, on a sandbox of your own; in a terminal, the console on it"
	@echo "make test    all tests"
	@echo "make coverage  the same, and which share of each package's branches they take; about half as long again"
	@echo "make e2e     what is released, installed and used; the scenarios with kubectl, on the sandbox and on a real API server"
	@echo "make image   the controllers' image, without Docker and registry, into dist/ (takes root)"
	@echo "make chart   the Helm chart and the kustomize base in charts/, from what install prints"
	@echo "make node    the image on a real node: installed, used, disturbed while it is used, and removed (takes root)"
	@echo "make proofs  what is promised of codes, grants, exceptions and records, tried on a real API server; takes a while"
	@echo "make nightly what takes hours: whole proofs, 10,000 histories, histories on a real API server, mutants, fuzzing, deeper interleavings"
	@echo "make check   lint, format, types, layers, sizes, the documentation as a site"
	@echo "make bench   speed and memory, as ratios to a yardstick"
	@echo "make dist    what is released, into dist/: wheels, archive and manifest for krew, lists of parts"
	@echo "make screenshots  the pictures of the README, from the recording beside them"
	@echo "make lock    bring the lock files up to date (needs uv)"
	@echo "make clean   remove what these made"

$(VENV)/ready: requirements-dev.lock
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer is needed" >&2; exit 1; }
	@test ! -L $(VENV) || { echo "error: $(VENV) is a link: make its target ready where that stands" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

demo: $(VENV)/ready
	@$(RUN) -m tests.demo

test: $(VENV)/ready
	$(RUN) -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

coverage: $(VENV)/ready
	$(RUN) -m tests.branches

e2e: $(VENV)/ready
	@$(RUN) -m tests.packaging --prove
	@$(RUN) -m tests.e2e --jobs 2

proofs: $(VENV)/ready
	@$(RUN) -m tests.e2e.proofs

image: $(VENV)/ready
	@$(RUN) -m tests.packaging.image

chart: $(VENV)/ready
	@$(RUN) -m tests.packaging.chart

node: $(VENV)/ready
	@$(RUN) -m tests.e2e.node

# Each part runs whatever another one came to; the end says which did not hold.
nightly: $(VENV)/ready
	@failed=; \
	part() { echo "== $$1"; shift; nice -n 5 $(RUN) -m "$$@" || failed="$$failed $$1"; }; \
	part "the image on a node" tests.e2e.node; \
	part "what breaks, as a table" tests.e2e.faults; \
	part "a Helm release" tests.e2e.release; \
	part "a real Prometheus" tests.e2e.watching; \
	part "a soak" tests.e2e.soak --minutes 10; \
	part "whole proofs" tests.e2e.proofs; \
	part "10,000 histories in process" tests.histories --count 10000; \
	part "histories on a real API server" tests.histories --real --count 24; \
	part "interleavings, two steps deeper" tests.interleavings --deeper 2; \
	part "mutants of what policies concern" tests.mutation --room match --sample 300; \
	part "mutants of guards" tests.mutation --room guards --sample 600; \
	part "fuzzing, a minute each" tests.fuzz --seconds 60; \
	test -z "$$failed" || { echo "error: not as it must be:$$failed" >&2; exit 1; }

dist: $(VENV)/ready
	@$(RUN) -m tests.packaging

screenshots: $(VENV)/ready
	$(RUN) -m tests.screenshots

check: $(VENV)/ready
	$(RUN) -m tests.check

bench: $(VENV)/ready
	$(RUN) -m tests.bench

lock:
	$(LOCK) pyproject.toml --extra dev -o requirements-dev.lock
	$(LOCK) pyproject.toml -c requirements-dev.lock -o requirements.lock
	$(LOCK) pyproject.toml -c requirements-dev.lock --extra tui -o requirements-console.lock
	$(LOCK) controllers/sandbox/pyproject.toml -c requirements-dev.lock -o controllers/sandbox/requirements.lock

clean:
	@test ! -d .sandbox || { test -x $(RUN) || $(MAKE) --no-print-directory $(VENV)/ready; $(RUN) -m tests.demo --stop; }
	rm -rf $(VENV) .sandbox .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build snapshot_report.html
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
