# Each target is one command; `make help` lists them.

# Packages with goroutines or unsafe memory, which the race detector's build
# watches; plans, schedules and naive kernels are pure and have none.
concurrent := $(wildcard bench checkpoint cmd collective data device launch nn observe parallel trainer)
# Packages whose tests rewrite their golden files with -update.
golden = $(sort $(dir $(shell grep -rl --include='*_test.go' 'flag.Bool."update"' .)))

# Runs arm64 programs on another processor; empty on arm64 itself.
emulator = $(if $(filter arm64,$(shell go env GOHOSTARCH)),,$(shell command -v qemu-aarch64-static || command -v qemu-aarch64))
test_arm64 = GOARCH=arm64 CGO_ENABLED=0 go test $(if $(emulator),-exec $(emulator))

.PHONY: build test test-arm64 test-arm64-kernels test-arm64-rest test-extblas fuzz ascend-sim test-ascend test-ascend-arm64 race bench bench-collectives bench-peers lint golden grid soak nightly hosts clean help

build: ## build the static binary bin/train
	CGO_ENABLED=0 go build -trimpath -o bin/train ./cmd/train

test: ## run all tests, a sample of the large ones
	go test ./...

test-arm64: test-arm64-kernels test-arm64-rest ## run the tests of what computes as arm64, under qemu-user elsewhere; -j2 runs both halves at once

has_emulator = test -n "$(emulator)" -o "$$(go env GOHOSTARCH)" = arm64 || { echo 'qemu-aarch64-static is missing; on Debian or Ubuntu: apt-get install qemu-user-static'; exit 1; }

test-arm64-kernels:
	@$(has_emulator)
	$(test_arm64) -run 'NEON|Offsets|^TestConformance$$/^neon$$' ./device/cpu

# The emulator keeps tables of its own for mapped memory, which TestRegions
# would count.
test-arm64-rest:
	@$(has_emulator)
	$(test_arm64) -short -skip '^TestRegions' ./device/... ./nn/... ./optim

test-extblas: ## test and compare the products of OpenBLAS and oneDNN, where they are installed
	CGO_ENABLED=0 go test -tags extblas ./device/extblas
	CGO_ENABLED=0 go test -tags extblas -run '^$$' -bench . -benchtime 100x ./device/extblas

ascend-sim: ## build the simulated Ascend libraries into bin/ascend-sim, with gcc
	for layout in 8 9 old; do sh internal/ascendsim/c/build.sh bin/ascend-sim/$$layout $$layout || exit; done

test-ascend: ascend-sim ## test the Ascend binding over the simulated libraries, with gcc
	CGO_ENABLED=0 go vet -tags ascend ./...
	GOARCH=arm64 CGO_ENABLED=0 go vet -tags ascend ./device/ascend/... ./collective/hccl
	CGO_ENABLED=0 go test -tags ascend ./internal/ascendsim ./device/ascend/... ./collective/hccl
	CGO_ENABLED=0 go test -tags ascend -run '^TestAscend' ./cmd/train
	ASCEND_TEST_LIBRARIES=$(CURDIR)/bin/ascend-sim/9 CGO_ENABLED=0 go test -tags ascend -count=1 -run '^(TestEquivalence|TestWireGrid)$$' ./trainer -grid 8 -grid-transport ascend
	CGO_ENABLED=1 go test -tags ascend -race -short -skip '^TestLayouts$$' ./device/ascend/... ./collective/hccl

test-ascend-arm64: ## call arm64 libraries as arm64, under qemu-user, with aarch64-linux-gnu-gcc
	sh internal/ascendsim/c/build.sh bin/ascend-sim/arm64 9 aarch64-linux-gnu-gcc
	QEMU_LD_PREFIX=/usr/aarch64-linux-gnu HCCL_HOST_SOCKET_PORT_RANGE=auto ASCEND_TEST_LIBRARIES=$(CURDIR)/bin/ascend-sim/arm64 \
		$(test_arm64) -tags ascend -short -run '^(TestConformance|TestPinned|TestReduceHalves|TestVersion|TestCopies|TestEvents|TestErrorText|TestExactSums)$$' ./device/ascend/... ./collective/hccl

race: ## run the tests of concurrent packages under the race detector
	go test -race -short -timeout 30m $$(go list $(concurrent:%=./%/...) | grep -v -e collective/plan -e parallel/schedule -e device/naive)

bench: ## run all benchmarks, one package after the other
	go test -p 1 -run '^$$' -bench . -benchmem ./...

bench-collectives: build ## collectives beside gloo and Open MPI; ARGS="--help" lists the choices
	python3 bench/peers/compare.py $(ARGS)

bench-peers: build ## trainings beside PyTorch, in turn; ARGS="--help" lists the choices
	python3 bench/peers/compare_training.py $(ARGS)

# A number of runs, not a time: at the end of a time, Go's fuzzer may call a run
# that it cut short a failure ("context deadline exceeded").
fuzz: ## run every fuzz target for a while, two at once
	grep -rno --include='*_test.go' --exclude-dir=gen '^func Fuzz[A-Za-z0-9]*' . | sort | sed 's|/[^/]*:[0-9]*:func | |' | \
	  xargs -P 2 -n 2 sh -c 'go test -run "^$$" -fuzz "^$$1\$$" -fuzztime 3000x -fuzzminimizetime 10x -parallel 1 "$$0" </dev/null'

lint: ## check formatting and vet; staticcheck too where it is installed
	@test -z "$$(gofmt -l .)" || { echo 'not formatted (gofmt -w):'; gofmt -l .; exit 1; }
	go vet ./...
	@if command -v staticcheck; then staticcheck ./...; fi

golden: ## rewrite the golden files; read the difference before committing it
	go test $(golden) -update

grid: ## 200 drawn ways to run a job must give equal bits or a named refusal; all pipelines on small models
	go test ./parallel -run '^TestPipelineEqualsOneProcess$$' -count=1 -whole
	go test ./trainer -run '^TestEquivalence$$' -count=1 -timeout 2h -grid 200

# Repeating finds races and orders of events. So packages that only compute, the
# same each time, are tested once: plans (minutes under the race detector),
# rank tables. TestSoak counts its calls in the log; 32 ranks over shared memory take
# 7 GB, so -p 1 leaves the memory to one transport at a time.
soak: ## the same 2000 times, the collectives' tests 20 times under the race detector, 100 killed workers
	go test ./trainer -run '^TestEquivalence$$' -count=1 -timeout 12h -grid 2000
	go test -race -count=20 -timeout 12h $$(go list ./collective/... | grep -v -e collective/plan -e collective/ranktable)
	go test -race -count=1 ./collective/plan ./collective/ranktable
	go test -race -v -run '^TestSoak$$' -count=1 -timeout 24h -p 1 ./collective/inproc ./collective/shm ./collective/tcp ./collective/mixed -ranks 1..17,32
	go test ./cmd/train -run '^TestKilledWorkers$$' -count=1 -timeout 1h -kills 100

nightly: build ## ResNet-50 at 224 x 224 and a GPT of 6 x 384, 500 steps as two columns and as two stages, curves in docs/
	for net in resnet50 gpt; do for stages in 1 2; do \
	  bin/train -config bench/$$net.yaml -nproc 2 -set train.micro_batch=2 -set train.steps=500 -set parallel.pipeline=$$stages \
	    -set observe.run_dir=runs/nightly-$$net-pp$$stages $(ARGS) || exit; done; \
	  python3 bench/curves.py docs/curves-$$net runs/nightly-$$net-pp1 runs/nightly-$$net-pp2 || exit; done

hosts: build ## jobs over two hosts that are network namespaces: equal bits, deaths, a cut link; as root
	python3 bench/hosts/hosts.py check

clean: ## remove what the targets and runs leave
	rm -rf bin runs

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[a-z0-9 -]* ## /\1\t/p' Makefile | expand -t 20
