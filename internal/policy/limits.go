package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// parseAmount reads a limit: bytes, a count, thousandths of a core or
// nanoseconds, as its kind says. 0 stands for none, but for a duration that can
// be nothing.
func parseAmount(k kind, text string) (int64, error) {
	if text == none && k != patience {
		return 0, nil
	}
	switch k {
	case size:
		return parseSize(text)
	case count:
		n, err := wholeNumber(text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number above 0, or none", printable(text))
		}
		return n, nil
	case cores:
		f, err := strconv.ParseFloat(text, 64)
		milli := math.Round(f * 1000)
		if err != nil || !decimal(text) || milli < 1 || milli > 1e9 {
			return 0, fmt.Errorf("%q is not a number of cores such as 2 or 0.5, or none", printable(text))
		}
		return int64(milli), nil
	case patience:
		return patienceText(text)
	case span:
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return 0, fmt.Errorf("%q is not a duration above 0 such as 30s, 15m or 4h, or none", printable(text))
		}
		return int64(d), nil
	}
	return 0, errors.New("not a limit")
}

func parseSize(text string) (int64, error) {
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

// wholeNumber reads decimal digits only: no sign, no leading zero, no
// underscore, so that a number means the same to every reader of the file.
func wholeNumber(text string) (int64, error) {
	if text == "" || text[0] == '0' || strings.Trim(text, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(text, 10, 64)
}

func decimal(text string) bool {
	return strings.Trim(text, "0123456789.") == "" && strings.Count(text, ".") <= 1
}

// formatAmount is the shortest text that parseAmount reads as n.
func formatAmount(k kind, n int64) string {
	if k == patience {
		return shortSpan(time.Duration(n))
	}
	if n == 0 {
		return none
	}
	switch k {
	case size:
		for _, u := range slices.Backward(units[:4]) {
			if n%u.size == 0 {
				return strconv.FormatInt(n/u.size, 10) + u.name
			}
		}
		return strconv.FormatInt(n, 10) + "B"
	case cores:
		return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
	case span:
		return shortSpan(time.Duration(n))
	}
	return strconv.FormatInt(n, 10)
}

// shortSpan is d without units that are zero: 4h rather than 4h0m0s.
func shortSpan(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

const spanPattern = `^([0-9]+(\.[0-9]*)?(ns|us|ms|s|m|h))+$`

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
			formatAmount(size, p.Limits.Memory), formatAmount(size, h.Memory)))
		p.Limits.Memory = h.Memory
	}
}

// limit is amount, unless the host lowered it.
func (p Plan) limit(name string, amount int64) int64 {
	if name == "limits.memory" {
		return p.Limits.Memory
	}
	return amount
}
