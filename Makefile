# Two commands matter: `make test` sets up and passes everything, `make bench` measures.

.PHONY: build test lint bench eval bless clean

# The release binary, target/release/qwen.
build:
	cargo build --release --locked -p qwen

# Everything that must hold: formatting, lints, unit and integration tests, crate edges, schema drift, the corpus.
test: lint
	cargo test --workspace --locked
	$(MAKE) test-sdk

# The binary under the real SDKs of Claude and Qwen Code, installed from their registries into target/sdk.
test-sdk:
	cargo build --locked -p qwen -p mock-model
	tests/sdk/run

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Measured, not asserted: a table of CPU time, memory, latency and instruction counts against their targets.
bench: build
	cargo build --release --locked -p mock-model -p bench
	./target/release/bench

# The agents that think in trees and graphs, on oracles of known quality, against simpler ways: a table with targets.
eval:
	cargo run --quiet --locked -p eval

# Rewrites what is generated and committed: schemas/ and corpus/.
bless:
	QWEN_BLESS=1 INSTA_UPDATE=always cargo test --locked -p qwen-dialects

clean:
	cargo clean
