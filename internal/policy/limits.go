package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// limitKeys are those of the section limits.
var limitKeys = []key{
	{name: "limits",
		doc: "Upper bounds for everything inside together. `none` lifts one."},
	{name: "limits.memory", kind: &sizes, project: lowers, example: "8GiB",
		doc: "Memory of all processes. A profile's default is lowered to what the machine has."},
	{name: "limits.processes", kind: &counts, project: lowers, example: "4096",
		doc: "Processes and threads."},
	{name: "limits.files", kind: &counts, project: lowers, example: "65536",
		doc: "Open files of one process."},
	{name: "limits.disk", kind: &sizes, project: lowers, example: "10GiB",
		doc: "Private storage: the home inside, /tmp and /dev/shm together; and what the writable trees of one file system grow by, the workspace, its copy in mode `review` and the scratch directory among them."},
	{name: "limits.filesize", kind: &sizes, project: lowers, example: "2GiB",
		doc: "Size that a file may grow to."},
	{name: "limits.cpus", kind: &cores, project: lowers, example: "2.5",
		doc: "Processor cores; `none` means all."},
	{name: "limits.time", kind: &spans, project: lowers, example: "4h",
		doc: "Wall-clock time of the run."},
}

// Limits are upper bounds for everything inside together, unless said
// otherwise. Zero means the profile's default was explicitly lifted.
type Limits struct {
	Memory    int64         // bytes
	Processes int64         // processes and threads
	Files     int64         // open descriptors a process
	Disk      int64         // bytes of private storage (home, /tmp, /dev/shm) together
	FileSize  int64         // bytes a file may grow to
	CPUs      float64       // cores; 0 means all
	Time      time.Duration // wall clock of the run
}

// none lifts a limit.
const none = "none"

var units = []struct {
	name string
	size int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1},
}

// The kinds of limits. 0 means none.
var (
	sizes = kind{
		takes:  "a size with a unit (`B`, `kB`, `MB`, `GB`, `TB`, `KiB`, `MiB`, `GiB`, `TiB`), or `none`",
		amount: parseSize,
		format: FormatSize,
		schema: func(key) map[string]any {
			return orNone(map[string]any{"type": "string", "pattern": "^[1-9][0-9]* ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"})
		},
	}
	counts = kind{
		takes:  "a whole number above 0, or `none`",
		amount: parseCount,
		format: func(n int64) string { return orLifted(n, strconv.FormatInt(n, 10)) },
		schema: func(key) map[string]any { return orNone(map[string]any{"type": "integer", "minimum": 1}) },
	}
	cores = kind{ // in thousandths
		takes:  "a number, or `none`",
		amount: parseCores,
		format: func(n int64) string { return orLifted(n, strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)) },
		schema: func(key) map[string]any { return orNone(map[string]any{"type": "number", "exclusiveMinimum": 0}) },
	}
	spans = kind{ // in nanoseconds
		takes:  "a duration with a unit (`s`, `m`, `h`), or `none`",
		amount: parseSpan,
		format: func(n int64) string { return orLifted(n, shortSpan(time.Duration(n))) },
		schema: func(key) map[string]any { return orNone(spanShape()) },
	}
)

func orLifted(n int64, text string) string {
	if n == 0 {
		return none
	}
	return text
}

func parseCount(text string) (int64, error) {
	if text == none {
		return 0, nil
	}
	n, err := wholeNumber(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number above 0, or none", printable(text))
	}
	return n, nil
}

func parseCores(text string) (int64, error) {
	if text == none {
		return 0, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	milli := math.Round(f * 1000)
	if err != nil || !decimal(text) || milli < 1 || milli > 1e9 {
		return 0, fmt.Errorf("%q is not a number of cores such as 2 or 0.5, or none", printable(text))
	}
	return int64(milli), nil
}

func parseSize(text string) (int64, error) {
	if text == none {
		return 0, nil
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := wholeNumber(strings.TrimSuffix(digits, " "))
		if err != nil {
			break
		}
		if n > math.MaxInt64/u.size {
			return 0, fmt.Errorf("size %q is larger than can be counted", printable(text))
		}
		return n * u.size, nil
	}
	return 0, fmt.Errorf("%q is not a size with a unit such as 512MiB or 8GiB, or none", printable(text))
}

func decimal(text string) bool {
	return strings.Trim(text, "0123456789.") == "" && strings.Count(text, ".") <= 1
}

// FormatSize is the shortest text that parseSize reads as n.
func FormatSize(n int64) string {
	for _, u := range slices.Backward(units[:4]) {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return orLifted(n, strconv.FormatInt(n, 10)+"B")
}

func (p *Plan) limits(e Effective, h Host) {
	p.Limits = Limits{
		Memory:    e.amount("limits.memory"),
		Processes: e.amount("limits.processes"),
		Files:     e.amount("limits.files"),
		Disk:      e.amount("limits.disk"),
		FileSize:  e.amount("limits.filesize"),
		CPUs:      float64(e.amount("limits.cpus")) / 1000,
		Time:      time.Duration(e.amount("limits.time")),
	}
	if h.Memory > 0 && p.Limits.Memory > h.Memory {
		p.Notes = append(p.Notes, fmt.Sprintf("limits.memory is lowered from %s to the %s that this machine has",
			FormatSize(p.Limits.Memory), FormatSize(h.Memory)))
		p.Limits.Memory = h.Memory
	}
}

func limitRows(e Effective, p Plan) (rows []Row) {
	for _, k := range limitKeys[1:] { // the first is the section
		all := e.entriesFor(k.name)
		if len(all) == 0 {
			continue
		}
		one := all[len(all)-1]
		if k.name == "limits.memory" { // which the host may have lowered
			one.Amount = p.Limits.Memory
		}
		rows = append(rows, Row{k.name, k.kind.format(one.Amount), one.Origin.String()})
	}
	return rows
}
