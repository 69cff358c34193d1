.PHONY: build prober test check lint generate reference bench new-user prove-agents release test-arm64

# What a build says it was made from: the release, and the commit, which is empty
# outside a repository.
VERSION =
COMMIT = $(shell test -e .git && git describe --always --exclude='*' --abbrev=12 --dirty)

# EMULATOR runs programs that were built for another architecture.
EMULATOR =

# STRIP=-s -w leaves the symbols out, as in a release.
STRIP =
STAMP = holdfast.dev/holdfast/internal/floor/command

build: prober ## bin/holdfast and bin/holdfast-prove, static
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='$(strip $(STRIP) -X $(STAMP).commit=$(COMMIT) -X $(STAMP).release=$(or $(VERSION),development))' -o bin/ ./cmd/holdfast ./cmd/holdfast-prove

prober: ## what 'holdfast prove' runs inside; the binary carries it
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/prober ./internal/prove/inside/prober
	gzip -9nc bin/prober >bin/prober.gz
	cmp -s bin/prober.gz internal/prove/probe/carried/prober.gz || mv bin/prober.gz internal/prove/probe/carried/

test: ## installs what the tests need when it is missing; as root it runs what depends on the user a second time as an ordinary one
	tools/needs
	$(MAKE) prober
	go run ./tools/suite $(SUITE)

test-arm64: ## the packages whose tests can run in an emulator, as arm64 programs
	tools/emulated

check: prober ## before a commit: what lint finds quickly, and the tests that need no boundary
	tools/lint quick
	go run ./tools/suite -quick

lint: ## what CI checks without running anything
	tools/lint

generate: ## everything that is committed and made by a program
	go generate ./...

reference: build ## bin/reference: the tables that 'holdfast reference' and 'holdfast prove reference' print
	$(EMULATOR) bin/holdfast reference --output bin/reference
	$(EMULATOR) bin/holdfast-prove reference --output bin/reference/prove

bench: ## side by side with the bare command, bubblewrap and other networks; writes bench/RESULTS.md
	tools/needs bench
	go run ./bench

# What eight agents and two sandboxes are installed in. An ordinary user must be able
# to read it.
NEW_USER = /var/lib/holdfast-test/new-user

new-user: ## as root: a new user's first hour with each of eight agents, and the same actions in other sandboxes; writes its part of bench/RESULTS.md; 2 GB from the npm registry
	tools/needs
	go run ./tools/agents install $(NEW_USER)/agents claude codex gemini qwen opencode copilot cline
	npm install --prefix $(NEW_USER)/agents/pi@0.73.1 --ignore-scripts --no-audit --no-fund --loglevel=error @mariozechner/pi-coding-agent@0.73.1
	tools/peers $(NEW_USER)/peers
	PATH=$(NEW_USER)/peers/bin:$$PATH HOLDFAST_TEST_AGENTS=$(NEW_USER)/agents go run ./bench -only path

release: ## bin/release: archives, packages, checksums and a list of what is linked; VERSION=1.2.3, else that of a tag, else development
	CGO_ENABLED=0 go run -C tools/release . -version '$(VERSION)'

# Status 1 says that something was done. Of an agent's own sandbox that is a
# finding; inside Holdfast it is a failure, told when all were played.
prove-agents: build ## all agent programs that are known, in all versions and postures that were driven; some 8 GB from the npm registry, and hours
	tools/needs
	go run ./tools/agents list >bin/agents
	failed=; \
	while read -r name versions; do \
		bin/holdfast prove --agent $$name --agent-version $$versions --posture all </dev/null || test $$? -eq 1 || exit 1; \
		bin/holdfast prove --agent $$name --agent-version latest --inside holdfast </dev/null || failed="$$failed $$name"; \
	done <bin/agents; \
	test -z "$$failed" || { echo "prove-agents: inside Holdfast not all was held and recorded:$$failed" >&2; exit 1; }
