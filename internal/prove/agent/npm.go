package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// FetchError means that npm could not fetch a package.
type FetchError struct {
	Command string // what to type where the registry is reachable
	Err     error
}

func (e *FetchError) Error() string { return e.Err.Error() }

// Unwrap returns npm's error.
func (e *FetchError) Unwrap() error { return e.Err }

// Hint says what to type.
func (e *FetchError) Hint() string {
	return "where the npm registry can be reached, type: " + e.Command
}

// checkPackage accepts the name of a package in the registry, with or without a
// scope. It refuses an address, path, option or alias, which npm would accept
// instead.
func checkPackage(name string) error {
	scope, rest, scoped := strings.Cut(name, "/")
	if !scoped {
		scope, rest = "@x", name
	}
	if len(name) > 200 || !strings.HasPrefix(scope, "@") || !isPlain(scope[1:]) || !isPlain(rest) {
		return fmt.Errorf("%q is not the name of a package of the npm registry", name)
	}
	return nil
}

// npmArguments override the user's npm configuration, except for the registry. No
// package scripts are run. Packages for this machine only are optional
// dependencies.
func npmArguments(prefix, pkg, version string) []string {
	return []string{
		"install", "--prefix", prefix, "--ignore-scripts", "--omit=dev", "--include=optional", "--package-lock=true",
		"--global=false", "--save=true", "--dry-run=false", "--engine-strict=false", "--prefer-offline", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error",
		"--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--", pkg + "@" + version,
	}
}

// npmCommand is the equivalent command for a user.
func npmCommand(target, pkg, version string) string {
	return fmt.Sprintf("npm install --prefix %s --ignore-scripts --omit=dev %s@%s", target, pkg, version)
}

func runNPM(ctx context.Context, dir, pkg, version string) error {
	// Without it npm might use a parent directory as the project.
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte("{\"private\": true}\n"), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "npm", npmArguments(dir, pkg, version)...)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	programs.Group(cmd)
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("npm is not installed: %w", err)
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("npm: %w: %s", err, firstLines(output.String(), 6))
	}
	return nil
}

// firstLines shortens a program's output to fit into an error.
func firstLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[:n]
	}
	return strings.Join(lines, "; ")
}

// lockFile is the part of npm's package-lock.json that is used here.
type lockFile struct {
	Packages map[string]struct {
		Version   string `json:"version"`
		Resolved  string `json:"resolved"`
		Integrity string `json:"integrity"`
		Link      bool   `json:"link"`
		Bundled   bool   `json:"inBundle"` // contained in another package's archive
	} `json:"packages"`
}

// checkLock reads npm's record of an install and returns the hash of the
// requested package. Every package must have come as an archive that has a hash.
func checkLock(dir, pkg, version string) (string, error) {
	path := filepath.Join(dir, "package-lock.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var l lockFile
	if err := json.Unmarshal(b, &l); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	main, ok := l.Packages["node_modules/"+pkg]
	if !ok || main.Version != version {
		return "", fmt.Errorf("%s does not contain %s %s", dir, pkg, version)
	}
	for at, p := range l.Packages {
		if at == "" || p.Bundled {
			continue
		}
		remote := strings.HasPrefix(p.Resolved, "https://") || strings.HasPrefix(p.Resolved, "http://")
		if p.Link || p.Integrity == "" || p.Resolved != "" && !remote {
			return "", fmt.Errorf("%s has no hash from the registry", at)
		}
	}
	return main.Integrity, nil
}
