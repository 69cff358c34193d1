.PHONY: build test lint generate bench

build: ## bin/holdfast, static
	CGO_ENABLED=0 go build -trimpath -o bin/holdfast ./cmd/holdfast

test: ## installs what the tests need when it is missing; as root it runs everything a second time as an ordinary user
	tools/needs
	go run ./tools/suite $(SUITE)

lint: ## what CI checks without running anything
	tools/lint

generate: ## everything that is committed and made by a program
	go generate ./...

bench: ## side by side with the bare command, bubblewrap and other networks; writes bench/RESULTS.md
	tools/needs bench
	go run ./bench
