package agent

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/floor/programs"
)

// nodeVersion is the node that is installed if the machine's own is too old.
// nodePackage contains the program; the package called node would download it
// with a script.
const (
	nodeVersion = "22.23.3"
	nodePackage = "node-linux-{arch}"
)

// findNode returns a node of at least that version: the given one, the one in
// PATH, or one that it installs.
func findNode(ctx context.Context, given, least, below string) (string, error) {
	if given != "" {
		if v, path, err := askNode(ctx, given); err == nil && Compare(v, least) >= 0 {
			return path, nil
		}
	}
	if node, err := nodeHere(ctx, os.Getenv("PATH"), least, below); err == nil {
		return node, nil
	}
	if Compare(nodeVersion, least) < 0 {
		return "", fmt.Errorf("the newest version that can be installed is %s", nodeVersion)
	}
	w := nodeWanted()
	rec, err := w.install(ctx, below)
	if err != nil {
		return "", err
	}
	return rec.installed(w.dir(below)).Program, nil
}

func nodeWanted() wanted {
	pkg := platform(nodePackage)
	return wanted{name: "node", pkg: pkg, version: nodeVersion, programs: []string{"node_modules/" + pkg + "/bin/node"}}
}

// nodeHere returns a node of at least that version from this machine.
func nodeHere(ctx context.Context, path, least, below string) (string, error) {
	if node := programs.Find("node", path); node != "" {
		if v, path, err := askNode(ctx, node); err == nil && Compare(v, least) >= 0 {
			return path, nil
		}
	}
	w := nodeWanted()
	rec, err := readRecord(w.dir(below))
	if err == nil && Compare(rec.Version, least) < 0 {
		err = fmt.Errorf("%s is older than %s", rec.Version, least)
	}
	return rec.installed(w.dir(below)).Program, err
}

// askNode returns the version of a node and where it is: the given program may be the
// shim of a version manager, which starts another.
func askNode(ctx context.Context, node string) (version, path string, err error) {
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, "-p", "process.version+' '+process.execPath").Output()
	if err != nil {
		return "", "", fmt.Errorf("asking %s for its version: %w", node, err)
	}
	version, path, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !ok || !filepath.IsAbs(path) {
		return "", "", fmt.Errorf("%s says %q of itself, not a version and a path", node, out)
	}
	return strings.TrimPrefix(version, "v"), path, nil
}
