//go:build linux

package probe

import "slices"

// leasts say how often each race must have been tried. They are far below what
// one processor does beside other work, and far above chance.
var leasts = map[string]int{
	"RAC-001": 20, "RAC-001b": 20, "RAC-002": 20, "RAC-002b": 20, "RAC-006": 20, "RAC-009": 500,
	"HST-033": 100, "HST-033b": 1000, "HST-033c": 1000,
}

// timed are the rows that take more than a second by intention: races, floods,
// limits of time, and what is started many times over.
var timed = []string{
	"RAC-001", "RAC-001b", "RAC-002", "RAC-002b", "RAC-007", "RAC-007b", "RAC-007c", "RAC-007d", "RAC-008b", "RAC-009",
	"DNY-002", "DNY-002b", "DNY-010b", "RES-003c", "RES-006", "RES-008",
	"HST-001c", "HST-023b", "HST-032", "HST-032b", "HST-032c", "HST-032d", "HST-032e", "HST-032f", "HST-032g", "HST-032h",
	"HST-033", "HST-033b", "HST-033c", "HST-034",
	"RES-161", "RES-162", "RES-162b", "RES-163", "RES-163b", "RES-164", "RES-164b", "RES-164c",
	"RES-165", "RES-165b", "RES-166", "RES-167", "RES-167b", "RES-167c", "RES-167d",
}

// alones are why no other row may be played beside a row.
var alones = map[string]string{
	"RES-001":  "the limit of processes may be one of the user (setrlimit(2)), of whom other rows are too",
	"RES-001b": "it counts what is left of the user's processes",
	"RES-002":  "it uses as much memory as it can get",
	"RES-002b": "it uses as much memory as it can get",
	"HST-034":  "it starts programs until memory is short",
}

// paced gives rows what the tables above say.
func paced(rows []Row) {
	for i := range rows {
		r := &rows[i]
		if r.Least == 0 {
			r.Least = leasts[r.ID]
		}
		if r.Alone == "" {
			r.Alone = alones[r.ID]
		}
		r.Timed = r.Timed || slices.Contains(timed, r.ID)
	}
}
