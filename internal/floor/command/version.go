package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release and commit are set by the Makefile: the release that is built, and the
// commit of the sources, with "-dirty" when they differ from it; "" when they are in
// no repository.
var release, commit = "development", ""

// shortCommit is how many digits of a commit are shown, as the Makefile asks git for.
const shortCommit = 12

// Release is the release that this program was built as; "development" for none.
func Release() string { return release }

// Build is the release and the commit that this program was built from, for records.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return buildLine(release, commitOf(commit, info))
}

// Version is the version of this program for reports: the build, the platform and
// the toolchain.
func Version() string {
	return fmt.Sprintf("%s %s/%s %s", Build(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func buildLine(release, commit string) string {
	if commit == "" {
		return release
	}
	return release + " (commit " + commit + ")"
}

// commitOf returns the commit that the Makefile has set, or that which the go command
// recorded (go help buildvcs); "" when neither is known.
func commitOf(set string, info *debug.BuildInfo) string {
	if set != "" || info == nil {
		return set
	}
	recorded := map[string]string{}
	for _, s := range info.Settings {
		recorded[s.Key] = s.Value
	}
	found := recorded["vcs.revision"]
	found = found[:min(len(found), shortCommit)]
	if found != "" && recorded["vcs.modified"] == "true" {
		found += "-dirty"
	}
	return found
}

// NewVersion is the verb that prints the version.
func NewVersion(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.printVersion(c.Root()) },
	}
}

func (a *App) printVersion(root *cobra.Command) error {
	_, err := fmt.Fprintln(a.Stdout, root.Name(), Version())
	return err
}
