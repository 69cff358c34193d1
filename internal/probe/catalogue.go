//go:build linux

package probe

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed catalogue.tsv
var catalogueTSV string

// Case is an entry of the escape catalogue, which is wider than the rows.
type Case struct {
	ID, Class, Title string
	Kind             Kind // also proxy, which is played from inside, and kinds that are not played here: policy, agent
	Core             bool
}

// Catalogue is every case that is known.
func Catalogue() []Case {
	var out []Case
	for line := range strings.Lines(catalogueTSV) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, Case{ID: f[0], Class: f[1], Kind: Kind(f[2]), Core: f[3] == "core", Title: f[4]})
	}
	return out
}

// Contained are the classes whose core cases must all have a row.
var Contained = []string{
	"fs.links", "fs.path-strings", "fs.deny-carveouts", "fs.procfs-sysfs-dev", "ns.mounts-namespaces",
	"fd.handles", "fs.races", "ipc.unix-sockets", "tty.terminal", "process.control", "sys.syscalls",
	"priv.escalation", "env.leakage-injection", "fs.credentials", "exec.git", "exec.deferred-files", "res.exhaustion",
	"net.direct-egress", "net.dns", "net.metadata-loopback-encodings", "net.proxy-parsing", "net.permitted-channels",
}

// Missing are the core cases of the contained classes that no row of rows
// plays.
func Missing(rows []Row) []Case {
	var out []Case
	for _, c := range Catalogue() {
		played := c.Kind == Sandbox || c.Kind == Host || c.Kind == Control || c.Kind == "proxy"
		if !c.Core || !played || !slices.Contains(Contained, c.Class) {
			continue
		}
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.ID == c.ID }) {
			out = append(out, c)
		}
	}
	return out
}
