package testenv

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/prove/netlab"
)

// startNetwork executes this binary in a new network, which ends with this
// process.
func startNetwork(hosts map[string]string, args []string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return netlab.Command(context.Background(), hosts, append([]string{exe}, args...)...)
}

func rerunInNetwork(t *testing.T, hosts map[string]string) {
	t.Helper()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(t.Name()), "/", "$/^") + "$"
	if asked := strings.Split(flag.Lookup("test.run").Value.String(), "/"); len(asked) > strings.Count(t.Name(), "/")+1 {
		pattern += "/" + strings.Join(asked[strings.Count(t.Name(), "/")+1:], "/")
	}
	args := []string{"-test.run=" + pattern, "-test.count=1", "-test.v"}
	if end, ok := t.Deadline(); ok {
		args = append(args, "-test.timeout="+(time.Until(end)-time.Second).String())
	}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd, err := startNetwork(hosts, append(args, flag.Args()...))
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	t.Logf("in a private network:\n%s", out)
	switch {
	case err != nil:
		t.Fatal(err)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Fatal("the test did not run")
	}
}
