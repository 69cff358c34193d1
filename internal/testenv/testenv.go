package testenv

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Want is the variable that lists promised features: names separated by commas,
// `all`, or `all,-name` for all but some. Empty promises nothing.
const Want = "WANT_FEATURES"

// Twice is the variable that, if set, says that first root and then an ordinary
// user run the tests of one build, so that a check which is the same for both may
// run in one pass only.
const Twice = "HOLDFAST_TEST_TWICE"

// Raced is the variable that, if set, says that the test program was built with
// the race detector, which sees nothing of what other programs do.
const Raced = "HOLDFAST_TEST_RACE"

// Build is the variable with the number of a build. Tests that have too much to
// run it all use it to choose a part; if it is empty, they use the date.
const Build = "HOLDFAST_TEST_BUILD"

// Feature is something that a machine has or lacks.
type Feature string

// Need returns if feature is there. If it is absent, Need ends the test: as
// skipped, or as failed if WANT_FEATURES promises the feature. The check returns
// nil for "there" and the reason for "absent"; a nil check means the one that
// this package knows by the feature's name.
//
// A test that needs [Root] must be called TestRoot…, so that the pass of an
// unprivileged user can exclude it by name and skips nothing.
func Need(t testing.TB, feature Feature, check func() error) {
	t.Helper()
	if feature == Root && !strings.HasPrefix(t.Name(), "TestRoot") {
		t.Fatalf("%s needs root: it must be called TestRoot…, see testenv.Need", t.Name())
	}
	if check == nil {
		check = known[feature]
	}
	if check == nil {
		t.Fatalf("feature %q is not known to testenv, and no check was given", feature)
	}
	fail, why := decide(feature, check(), os.Getenv(Want))
	switch {
	case fail:
		t.Fatal(why)
	case why != "":
		t.Skip(why)
	}
}

// Have reports whether a feature in this package's list is there. It is for tests
// that do more if they can, not for tests that do nothing elsewhere.
func Have(feature Feature) bool {
	check := known[feature]
	return check != nil && check() == nil
}

// decide is Need without the test: why is empty if the feature is there.
func decide(feature Feature, absent error, want string) (fail bool, why string) {
	if absent == nil {
		return false, ""
	}
	if isPromised(feature, want) {
		return true, fmt.Sprintf("%s=%s promises %s, but: %v", Want, want, feature, absent)
	}
	return false, fmt.Sprintf("needs %s: %v", feature, absent)
}

// isPromised reports whether list promises feature. An exclusion overrides `all`, in
// any order.
func isPromised(feature Feature, list string) bool {
	promised := false
	for name := range strings.SplitSeq(list, ",") {
		switch name = strings.TrimSpace(name); {
		case name == "-"+string(feature):
			return false
		case name == "all" || name == string(feature):
			promised = true
		}
	}
	return promised
}
