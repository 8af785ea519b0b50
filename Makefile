# Each target is one command; `make help` lists them.

# Packages with goroutines or unsafe memory, which the race detector's build
# watches; plans and schedules are pure and have none.
concurrent := $(wildcard bench checkpoint cmd collective data device launch nn observe parallel trainer)
# Packages whose tests rewrite their golden files with -update.
golden = $(sort $(dir $(shell grep -rl --include='*_test.go' 'flag.Bool."update"' .)))

.PHONY: build test race bench bench-collectives lint golden grid soak clean help

build: ## build the static binary bin/train
	CGO_ENABLED=0 go build -trimpath -o bin/train ./cmd/train

test: ## run all tests, a sample of the large ones
	go test ./...

race: ## run the tests of concurrent packages under the race detector
	go test -race -short $$(go list $(concurrent:%=./%/...) | grep -v -e collective/plan -e parallel/schedule)

bench: ## run all benchmarks, one package after the other
	go test -p 1 -run '^$$' -bench . -benchmem ./...

bench-collectives: build ## collectives beside gloo and Open MPI; ARGS="--help" lists the choices
	python3 bench/peers/compare.py $(ARGS)

lint: ## check formatting and vet; staticcheck too where it is installed
	@test -z "$$(gofmt -l .)" || { echo 'not formatted (gofmt -w):'; gofmt -l .; exit 1; }
	go vet ./...
	@if command -v staticcheck; then staticcheck ./...; fi

golden: ## rewrite the golden files; read the difference before committing it
	go test $(golden) -update

grid: ## 200 drawn ways to run a job must give equal bits or a named refusal
	go test ./trainer -run '^TestEquivalence$$' -count=1 -timeout 2h -grid 200

soak: ## the same 2000 times, the collectives' tests 20 times under the race detector, 100 killed workers
	go test ./trainer -run '^TestEquivalence$$' -count=1 -timeout 12h -grid 2000
	go test -race -count=20 -timeout 4h ./collective/...
	go test ./cmd/train -run '^TestKilledWorkers$$' -count=1 -timeout 1h -kills 100

clean: ## remove what the targets and runs leave
	rm -rf bin runs

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[a-z ]* ## /\1\t/p' Makefile | expand -t 20
