# Ringmaster's everyday commands. `make help` lists them.
SHELL := /bin/bash
JOBS ?= $(shell nproc)
# Many tests wait more than they compute.
TEST_JOBS ?= $(shell expr $(JOBS) + 1)
PRESET ?= release
BIN := build/$(PRESET)/bin

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install the Debian packages that are missing, or print the command that does.
	@cmake/install-packages.sh

.PHONY: configure
configure: setup
	@cmake --preset $(PRESET) > build-$(PRESET).log 2>&1 || { cat build-$(PRESET).log; exit 1; }
	@rm -f build-$(PRESET).log

.PHONY: build
build: configure ## Build the programs into build/release/bin.
	@cmake --build --preset $(PRESET) -j $(JOBS)

.PHONY: demo
demo: build ## Train a network on handwritten digits with four workers, through the real operator.
	@$(BIN)/ringmaster run examples/digits/job.yaml

.PHONY: test
test: build ## Build and run every test; ARGS=--without-cluster leaves out those on a real API server.
	@cmake --build --preset $(PRESET) -j $(JOBS) --target tests
	@tests/cluster/ctest $(ARGS) --preset $(PRESET) -j $(TEST_JOBS)

.PHONY: soak
soak: build ## Train every network by name at full size, sum a million elements of every type; ARGS=Soak.test_... runs one.
	@cmake --build --preset $(PRESET) -j $(JOBS) --target collectives_operations_test
	@RINGMASTER_BIN_DIR=$(CURDIR)/$(BIN) tests/e2e/soak $(ARGS)

.PHONY: e2e
e2e: build ## Install the chart on two real nodes, train, kill, drain. Needs root; touches nothing of this machine.
	@PRESET=$(PRESET) tests/e2e/node/run -j $(JOBS)

.PHONY: cluster
cluster: ## Build the Kubernetes programs that tests of a real cluster need: about 5 minutes on two cores, once.
	@tests/cluster/build

.PHONY: bench-operator
bench-operator: build ## Measure the operator on a real API server beside its peers; ARGS=--short does less of each.
	@cmake --build --preset $(PRESET) -j $(JOBS) --target rendezvous_load
	@RINGMASTER_BIN_DIR=$(CURDIR)/$(BIN) tests/bench/operator/bench $(ARGS)

.PHONY: bench-collectives
bench-collectives: setup ## Measure allreduce beside Gloo and Open MPI, which it installs; ARGS=--short does less.
	@cmake/install-packages.sh $(CURDIR)/tests/bench/collectives/debian-packages.txt
	@$(MAKE) configure
	@cmake --build --preset $(PRESET) -j $(JOBS) --target bench_collectives
	@RINGMASTER_BIN_DIR=$(CURDIR)/$(BIN) tests/bench/collectives/bench $(ARGS)

.PHONY: bench-hosts
bench-hosts: configure ## Measure allreduce among four hosts whose links are shaped. Needs root; ARGS=--short does less.
	@cmake --build --preset $(PRESET) -j $(JOBS) --target ringmaster-bench-collectives ringmaster-explain-collectives
	@RINGMASTER_BIN_DIR=$(CURDIR)/$(BIN) tests/bench/collectives/hosts $(ARGS)

.PHONY: compare-pytorch
compare-pytorch: configure ## Check every op, optimizer and network beside PyTorch, which it installs, once.
	@cmake --build --preset $(PRESET) -j $(JOBS) --target dump_cases ringmaster-bench-train
	@RINGMASTER_BIN_DIR=$(CURDIR)/$(BIN) tests/pytorch/compare $(ARGS)

.PHONY: bench-train
bench-train: configure ## Measure a training step beside PyTorch, which it installs, once; ARGS="--cases lenet-bn:64" does less.
	@cmake --build --preset $(PRESET) -j $(JOBS) --target ringmaster-bench-train
	@RINGMASTER_BIN_DIR=$(CURDIR)/$(BIN) tests/bench/train/bench $(ARGS)

.PHONY: nccl
nccl: ## Fetch NCCL and CUDA's headers, once, 220 MB; what is built from then on can use GPUs for collectives.
	@cmake/install-packages.sh $(CURDIR)/runtime/collectives/nccl/debian-packages.txt
	@cmake/fetch-nccl

.PHONY: charts
charts: setup ## Lint the chart, render it in several shapes and pack it into build/charts; fetches helm, Prometheus and its operator, once.
	@tests/charts/charts

.PHONY: images
images: build ## Build the container images, with buildah, podman or docker; images/build.sh says what can be set.
	@BIN=$(BIN) images/build.sh

.PHONY: asan
# The slow tests wait for processes of their own and leave a third of the cores idle where one test more than cores runs.
asan: export TEST_JOBS := $(shell expr $(JOBS) + 2)
asan: ## Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer.
	@$(MAKE) test PRESET=asan

.PHONY: tsan
tsan: ## Run the tests labelled `threads` under ThreadSanitizer.
	@$(MAKE) configure PRESET=tsan
	@cmake --build --preset tsan -j $(JOBS) --target threads_tests
	@tests/cluster/ctest --without-cluster --preset tsan -j $(TEST_JOBS) $(ARGS)

.PHONY: lint
lint: configure ## Check format, marks of merges, include rules and that generated files are current.
	@tests/lint/format.sh --check
	@tests/lint/merge_marks.sh
	@python3 tests/lint/include_rules.py
	@cmake --build --preset $(PRESET) -j $(JOBS) --target check_generated

.PHONY: fmt
fmt: ## Format the C++ code.
	@tests/lint/format.sh

.PHONY: generate
generate: configure ## Write crds/ and docs/ again from the API's source.
	@cmake --build --preset $(PRESET) --target update_generated

.PHONY: clean
clean: ## Remove what was built.
	@rm -rf build
