// Package testenv tells tests what this machine can do, and is the only place
// that may skip one. A test states what it needs; where that is absent the test
// is skipped, unless WANT_FEATURES promised it: then the absence is a failure.
// Without such a promise a broken machine and a passing suite look the same.
//
// The package is for tests only: nothing that the binary links imports it.
package testenv

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Want is the variable that lists promised features: names with commas between
// them, `all`, or `all,-name` for all but some. Empty promises nothing.
const Want = "WANT_FEATURES"

// Twice is the variable that says, when it is set, that root and then an ordinary
// user run the tests of one build, so that what either shows may be left to one.
const Twice = "HOLDFAST_TEST_TWICE"

// Raced is the variable that says, when it is set, that the test program was built
// with the race detector, which sees nothing of what other programs do.
const Raced = "HOLDFAST_TEST_RACE"

// Build is the variable with the number of a build, by which tests choose what they
// play of too much to play it all; the date where it is empty.
const Build = "HOLDFAST_TEST_BUILD"

// Feature is something that a machine has or lacks.
type Feature string

// Need goes on when feature is there. Where it is absent it ends the test: as
// skipped, or as failed when WANT_FEATURES promises the feature. The check
// returns nil for "there" and the reason for "absent"; a nil check means
// the one that this package knows by the feature's name.
//
// A test that needs [Root] must be called TestRoot…, so that the pass of an
// unprivileged user leaves it out by its name and nothing is skipped there.
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

// Have reports whether a feature of this package's list is there. It is for
// tests that do more where they can, not for tests that do nothing elsewhere.
func Have(feature Feature) bool {
	check := known[feature]
	return check != nil && check() == nil
}

// decide is Need without the test: why is empty where the feature is there.
func decide(feature Feature, absent error, want string) (fail bool, why string) {
	if absent == nil {
		return false, ""
	}
	if wanted(feature, want) {
		return true, fmt.Sprintf("%s=%s promises %s, but: %v", Want, want, feature, absent)
	}
	return false, fmt.Sprintf("needs %s: %v", feature, absent)
}

// wanted reports whether list promises feature. A name that is taken away wins
// over `all`, wherever it is.
func wanted(feature Feature, list string) bool {
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
