# Every target can be run alone and does only what is not done yet. `make help` lists them.

VENV ?= .venv
# The environment that builds and tests. `make install VENV=elsewhere` puts the finished wheel into another.
DEV := .venv
PIP_FLAGS := --quiet --disable-pip-version-check --require-hashes
export PATH := $(PATH):$(HOME)/.cargo/bin
export PYTHONDONTWRITEBYTECODE := 1

# Cargo would look for tokens of this make, which gives them to makes alone.
CARGO := MAKEFLAGS= cargo
CELL := target/release/crosswind-cell
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := pyproject.toml README.md LICENSE THIRD-PARTY-NOTICES.txt $(shell find packaging python -type f ! -name '*.pyc')
STUDY ?= quickstart

.DEFAULT_GOAL := help
.PHONY: help demo install build build-tests test-needs test-packages wheels browser kernel kernel-wheel deb test test-rust test-python check check-rust check-python docs documents licences \
        advisories bench release catalog coverage figures golden pages reference fuzz lock clean
.DELETE_ON_ERROR:

help:
	@echo "make demo        set up, build, run the study quickstart and say where its report is"
	@echo "make test        every test"
	@echo "make check       formatting, lints, types, import contracts, licences"
	@echo "make docs        the documentation as a site, in dist/site; its links are checked"
	@echo "make wheels      wheels for other machines, x86-64 and arm64, in dist/wheels; ARCHITECTURES=aarch64 for one of them"
	@echo "make install     the wheel into VENV (default .venv)"
	@echo "make build       the wheel, in dist/"
	@echo "make kernel      the kernel of virtual time (docs/virtual-time.md), once"
	@echo "make kernel-wheel  the same as a wheel for other machines, in dist/kernel/"
	@echo "make deb         a Debian package for this system's Python, with the kernel of virtual time: in dist/deb"
	@echo "make release     the wheel, what it is made of (SBOM), what the version brings, digests: in dist/release"
	@echo "make browser     what browsers and Node need as clients and servers (docs/peers-node.md): Chromium, Node, npm packages"
	@echo "make bench       speed and fidelity, each beside its reference; BENCH=forwarding for one of:"
	@echo "                 $(filter-out common,$(basename $(notdir $(wildcard benches/*.py))))"
	@echo "make fuzz        the parsers, with random and malformed input"
	@echo "make advisories  known vulnerabilities of dependencies (network)"
	@echo "make catalog     what a cell can be, as crosswind-cell describes it: for the Python package and docs/study.md"
	@echo "make reference   the tables of docs/result.md, the commands of docs/cli.md"
	@echo "make pages       the golden pages of tests anew: what reports say of runs made by hand; ONLY=tests/pages/costs.md"
	@echo "make golden      what the command line says, compared with an earlier commit: BASE=COMMIT; ONLY=\"run quickstart\""
	@echo "make coverage    how often the intervals enclose the truth, by simulation, for docs/statistics-reference.md; TRIALS=2000, ONLY=bursts"
	@echo "make figures     the picture of docs/transfer-time.md, from RUNS=\"transfer-time-... transfer-time-held-out-... queue-size-...\""
	@echo "make lock        the lock files, from pyproject.toml (network)"
	@echo "make clean       removes what was built; runs are kept"

demo:
	@$(SETUP) -j2 install
	@packaging/demo $(VENV)/bin/crosswind $(STUDY)

# The development environment: the exact versions of the lock file, nothing else.
$(DEV)/.locked: requirements-dev.lock
	@python="$$(packaging/find-python)" && { test -x $(DEV)/bin/python || "$$python" -m venv $(DEV); }
	$(DEV)/bin/python -m pip install $(PIP_FLAGS) -r requirements-dev.lock
	@touch $@

# The binary is a target of its own, so that `make -j2` compiles it while Python's packages are fetched.
build: dist/.built
dist/.built: $(DEV)/.locked $(CELL) $(PYTHON_SOURCES)
	@packaging/find-python > /dev/null
	@rm -rf dist && mkdir dist
	@# Man pages and completions of shells, where an installation has its share/.
	PYTHONPATH=python $(DEV)/bin/python -m crosswind.cli.manual packaging/wheel-data/data/share
	MAKEFLAGS= $(DEV)/bin/maturin build --release --locked --quiet --out dist
	@touch $@

ARCHITECTURES ?= x86_64 aarch64
wheels: dist/.built
	packaging/wheels $(ARCHITECTURES)

install: $(VENV)/.crosswind
$(VENV)/.crosswind: dist/.built requirements.lock
ifneq ($(VENV),$(DEV))
	@test -x $(VENV)/bin/python || "$$(packaging/find-python)" -m venv $(VENV)
	$(VENV)/bin/python -m pip install $(PIP_FLAGS) -r requirements.lock
endif
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall dist/*.whl
	@touch $@

# Whoever wants no virtual time needs none of this.
kernel:
	@kernel/build

# Not beside Crosswind's own wheel, which is installed by the name of its directory.
kernel-wheel:
	@python="$$(packaging/find-python)" && "$$python" packaging/kernel/wheel.py dist/kernel

deb: dist/.built kernel-wheel
	packaging/deb

# Whoever wants no peers needs none of this. `crosswind browser install` does the same.
browser: $(DEV)/.locked
	PYTHONPATH=python $(DEV)/bin/python -m crosswind browser install

# Sets up what tests need, then runs them. A test that lacks something says so; in CI it fails.
SETUP := $(MAKE) --no-print-directory
test:
	@packaging/system-packages
	@$(SETUP) -j2 --output-sync=target build build-tests test-needs
	@status=0; $(SETUP) test-rust test-python || status=$$?; packaging/system-packages --missing || status=1; exit $$status

build-tests: $(DEV)/.locked
	$(CARGO) test --workspace --locked --quiet --no-run

test-needs:
	@$(SETUP) --keep-going kernel browser test-packages || test "$$CI" != true

# What tests alone use, so that none of them waits for a registry: npm packages, the Go peers of tests/peers and the object
# store of tests/objects in the compiler's cache, the crate of integrations/rust.
test-packages: $(DEV)/.locked
	$(DEV)/bin/python tests/npm_packages.py
	$(CARGO) test --manifest-path integrations/rust/Cargo.toml --target-dir target/integrations --locked --quiet --no-run
	cd tests/peers/go && CGO_ENABLED=0 go build -trimpath -mod=readonly -o /dev/null .
	cd tests/objects/server && CGO_ENABLED=0 go build -trimpath -mod=readonly -o /dev/null .

test-rust: $(DEV)/.locked
	$(CARGO) test --workspace --locked --quiet

# How many tests run at a time. Most of them wait, so there are more than processors.
WORKERS ?= 4
# It writes bytecode, so that a command line that a test starts in a process of its own need not compile Crosswind first.
PYTEST := PYTHONDONTWRITEBYTECODE= $(DEV)/bin/python -m pytest --durations=10
test-python: dist/.built
	$(PYTEST) -m "not alone" -n $(WORKERS) --dist worksteal
	$(PYTEST) -m alone

check: check-rust check-python docs licences

# A link to a page or heading that is not there is an error. The schemas are what `crosswind schema` prints.
SITE ?= dist/site
docs: $(DEV)/.locked
	@for what in study result page; do \
	    PYTHONPATH=python $(DEV)/bin/python -m crosswind schema $$what > docs/$$what.schema.json || exit 1; \
	done
	$(DEV)/bin/sphinx-build --quiet --fail-on-warning --keep-going -b html docs $(SITE)

# A target without a standard library, as the guest's kernel has none.
NO_STD := x86_64-unknown-none
# What is linked with that kernel is a workspace of its own.
KERNEL_PATH := --manifest-path kernel/path/Cargo.toml
check-rust: $(DEV)/.locked
	cargo fmt --all --check
	cargo fmt $(KERNEL_PATH) --check
	$(CARGO) clippy --workspace --all-targets --locked --quiet -- -D warnings
	cargo fmt --manifest-path integrations/rust/Cargo.toml --check
	$(CARGO) clippy --manifest-path integrations/rust/Cargo.toml --target-dir target/integrations --all-targets --quiet -- -D warnings
	$(CARGO) clippy $(KERNEL_PATH) --target-dir target/kernel --locked --quiet -- -D warnings
	@test -d "$$(rustc --print sysroot)/lib/rustlib/$(NO_STD)" || rustup --quiet target add $(NO_STD) || true
	@if test -d "$$(rustc --print sysroot)/lib/rustlib/$(NO_STD)"; then \
	    $(CARGO) build -p crosswind-path -p crosswind-vt-forwarder --no-default-features --target $(NO_STD) --locked --quiet; \
	else \
	    echo "the path was not built without the standard library: rustup target add $(NO_STD)"; test "$$CI" != true; \
	fi

check-python: $(DEV)/.locked
	$(DEV)/bin/ruff format --check --quiet python tests packaging
	$(DEV)/bin/ruff check python tests packaging
	$(DEV)/bin/mypy
	MYPYPATH=tests $(DEV)/bin/mypy --follow-imports=silent benches
	PYTHONPATH=python $(DEV)/bin/lint-imports --no-cache

licences: $(DEV)/.locked
	$(DEV)/bin/python packaging/licences.py
	$(DEV)/bin/python packaging/notices.py --check
	@if command -v cargo-deny > /dev/null; then cargo deny --offline check bans licenses sources; fi

advisories:
	@command -v cargo-deny > /dev/null || { \
	    echo "error: cargo-deny is missing"; echo "hint: cargo install --locked cargo-deny"; exit 1; } >&2
	cargo deny check advisories

# Each program in benches/ prints what it measured beside its reference from the same run; BENCH names one of them.
BENCH ?= $(filter-out common,$(basename $(notdir $(wildcard benches/*.py))))
bench: install
ifneq ($(filter transports,$(BENCH)),)
	$(CARGO) build --release --locked --quiet --example minimal -p crosswind-transport
endif
	@for bench in $(BENCH); do PATH="$(CURDIR)/$(VENV)/bin:$$PATH" "benches/$$bench.py" || exit 1; done

# fuzz/README.md. Each Rust target gets FUZZ_SECONDS; the study parser has its examples drawn anew.
FUZZ_SECONDS ?= 60
fuzz: $(DEV)/.locked
	$(DEV)/bin/python -m pytest tests/property/test_study_fuzz.py --hypothesis-seed=$$(date +%s)
	@cargo +nightly fuzz --version > /dev/null 2>&1 || { echo "error: cargo-fuzz or a nightly Rust is missing"; \
	    echo "hint: rustup toolchain install nightly && cargo install --locked cargo-fuzz"; exit 1; } >&2
	@for target in $$(cargo +nightly fuzz list); do \
	    mkdir -p fuzz/corpus/$$target fuzz/seeds/$$target; \
	    cargo +nightly fuzz run "$$target" fuzz/corpus/$$target fuzz/seeds/$$target -- \
	        -max_total_time=$(FUZZ_SECONDS) -max_len=1000 || exit 1; \
	done

# What crosswind-cell says of itself, and everything that is made of it. Tests say whether it is current.
CATALOG := python/crosswind/catalog/catalog.json
catalog: $(DEV)/.locked $(CELL)
	$(CELL) --describe | $(DEV)/bin/python packaging/catalog.py > $(CATALOG).new
	@mv $(CATALOG).new $(CATALOG)
	PYTHONPATH=python $(DEV)/bin/python -m crosswind.cli.study_reference docs/study.md

$(CELL): $(RUST_SOURCES)
	$(CARGO) build --release --locked --quiet -p crosswind-cell
	@touch $@

# What the documentation says of results; a test says whether it is current.
reference: $(DEV)/.locked
	PYTHONPATH=python $(DEV)/bin/python -m crosswind.report.reference docs/result.md
	PYTHONPATH=python $(DEV)/bin/python -m crosswind.cli.reference docs/cli.md

# An hour on an idle machine with two processors. Every process has one thread, and there is one for each processor.
TRIALS ?= 2000
coverage: install
	PYTHONPATH=python:tests OPENBLAS_NUM_THREADS=1 $(DEV)/bin/python -m coverage.table docs/statistics-reference.md --trials $(TRIALS) \
		$(if $(ONLY),--only $(ONLY))

# Where the command line says anything else than an earlier commit, without a reason in tests/golden/reasons.toml.
golden: $(DEV)/.locked
	PYTHONPATH=tests $(DEV)/bin/python -m golden $(BASE) $(if $(ONLY),--only "$(ONLY)")

# Golden pages: what reports say of runs made by hand (tests/pages.py). ONLY names some of the files.
pages: $(DEV)/.locked
	PYTHONPATH=python:tests $(DEV)/bin/python -m pages $(ONLY)

# docs/documents.md: three minutes of runs in virtual time.
DOCUMENTS = thesis message-size transfer-time queue-size transfer-time-held-out websocket-or-http latency-by-link http-or-https mathis distance packet-size
documents: $(DEV)/.locked $(CELL)
	runs=$$(mktemp -d) && trap 'rm -r "$$runs"' EXIT && export PYTHONPATH=python:tests && \
	for study in $(DOCUMENTS); do \
	    $(DEV)/bin/python -m crosswind run $$study --quick --clock virtual --output $$runs/$$study || exit 1; \
	done && $(DEV)/bin/python -m documents $$runs/*

# The runs of transfer-time, transfer-time-held-out and queue-size, as docs/transfer-time.md says they were made.
figures: $(DEV)/.locked
	PYTHONPATH=python $(DEV)/bin/python packaging/figures.py docs/transfer-time.svg $(RUNS)

# The newest commit's time stands for that of the build in every file that has one.
release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release: dist/.built
	packaging/release

lock: $(DEV)/.locked
	packaging/lock

clean:
	rm -rf target dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache $(DEV)
