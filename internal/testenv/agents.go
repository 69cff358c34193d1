package testenv

import (
	"fmt"
	"os"
	"path/filepath"
)

// sharedAgents is where tools/needs installs agent programs for the tests of
// both users.
const sharedAgents = "/var/lib/holdfast-test/agents"

// AgentsDir is the directory of the agent programs for tests:
// HOLDFAST_TEST_AGENTS, else where tools/needs installs them for all users of the
// machine, else below this user's state directory.
func AgentsDir() string {
	if dir := os.Getenv("HOLDFAST_TEST_AGENTS"); dir != "" {
		return dir
	}
	if _, err := os.Stat(sharedAgents); err == nil {
		return sharedAgents
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return sharedAgents
	}
	return filepath.Join(home, ".local", "state", "holdfast", "agents")
}

// agents looks for the programs that CI tests with, in any version. A test that
// needs a certain version looks for that itself.
func agents() error {
	for _, name := range []string{"claude", "codex"} {
		found, err := filepath.Glob(filepath.Join(AgentsDir(), name+"@*", "holdfast.json"))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s is not installed in %s (tools/needs does it)", name, AgentsDir())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
