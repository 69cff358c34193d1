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

// AccountsDir is where tools/needs installs further agent programs, for the tests of
// their logins alone.
func AccountsDir() string { return filepath.Join(AgentsDir(), "accounts") }

// installed looks for agent programs, in any version. A test that needs a certain version
// looks for that itself.
func installed(dir func() string, names ...string) func() error {
	return func() error {
		for _, name := range names {
			found, err := filepath.Glob(filepath.Join(dir(), name+"@*", "holdfast.json"))
			if err == nil && len(found) == 0 {
				err = fmt.Errorf("%s is not installed in %s (tools/needs does it)", name, dir())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}
