package consent

import (
	"fmt"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestDescribeEnvironment shows what differs, first what is known to decide
// what a program does, and how much is left out of long values.
func TestDescribeEnvironment(t *testing.T) {
	var many []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("A%04d=1", i))
	}
	lines := func(a event.Attempt) string {
		var b strings.Builder
		for line := range strings.Lines(shown(asked(a))) {
			if strings.Contains(line, "environment") && !strings.Contains(line, "session:") {
				b.WriteString(line)
			}
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		environment []string
		unknown     bool
		want        string
	}{
		"none": {nil, false, ""},
		"some": {[]string{"CI=1", "GIT_CONFIG_COUNT=1", "GIT_EXEC_PATH", "https_proxy=http://h\x1b[2K"}, false, `! unusual: environment: GIT_CONFIG_COUNT=1
! unusual: environment: GIT_EXEC_PATH, which is no longer set
! unusual: environment: $'https_proxy=http://h\u{001B}[2K'
! unusual: environment: it holds control characters, which move the cursor or rewrite a line: 1
  environment: CI=1
`},
		"not known": {nil, true, `! unusual: not all of its environment is known
! unusual: it can be allowed only once: not all of its environment is known
`},
	} {
		got := lines(changed(push(), func(a *event.Attempt) { a.Environment, a.EnvironmentUnknown = tt.environment, tt.unknown }))
		if got != tt.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, tt.want)
		}
	}
	long := lines(changed(push(), func(a *event.Attempt) { a.Environment = many }))
	if !strings.Contains(long, "2970 variables of its environment are not shown here, of 20790 bytes") || strings.Count(long, "\n") != firstArguments+1 {
		t.Errorf("of many there is\n%s", long)
	}
}
