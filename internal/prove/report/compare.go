package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Changes are the differences between a baseline and a run.
type Changes struct {
	Schema int    `json:"schema"` // set by the writer
	Kind   string `json:"kind"`   // changes; set by the writer
	Was    Side   `json:"was"`
	Is     Side   `json:"is"`
	// Identity are the parts of target, host and tool that differ.
	Identity []Difference `json:"identity,omitempty"`
	Weakened []Change     `json:"weaker,omitempty"`
	Better   []Change     `json:"better,omitempty"`
	Changed  []Change     `json:"changed,omitempty"`  // neither, but another verdict or another kind of failure
	New      []Change     `json:"new,omitempty"`      // rows that the baseline does not have
	Vanished []Change     `json:"vanished,omitempty"` // rows that the run no longer has
	// Unplayed counts rows of the baseline that the selection of the run left out.
	Unplayed int `json:"unplayed,omitempty"`
	Same     int `json:"same"` // unchanged rows
}

// Side is one side of the comparison.
type Side struct {
	Target Target `json:"target"`
	Host   Host   `json:"host"`
	Total  Tally  `json:"total"`
}

// Difference is a field that differs.
type Difference struct {
	Field string `json:"field"`
	Was   string `json:"was,omitempty"`
	Is    string `json:"is,omitempty"`
}

// Change is a row that has changed.
type Change struct {
	ID     string   `json:"id"`
	Class  string   `json:"class,omitempty"`
	Title  string   `json:"title,omitempty"`
	Was    string   `json:"was,omitempty"` // verdict; "" for a new row
	Is     string   `json:"is,omitempty"`  // verdict; "" for one that vanished
	WasHow []string `json:"wasHow,omitempty"`
	IsHow  []string `json:"isHow,omitempty"`
	Reason string   `json:"reason,omitempty"` // of the new verdict
	Rerun  string   `json:"rerun,omitempty"`
	Advice string   `json:"advice,omitempty"`
}

// Weaker reports whether the target holds less than the baseline says.
func (c Changes) Weaker() bool { return len(c.Weakened) > 0 }

// Empty reports whether nothing differs, neither the rows nor what was tried.
func (c Changes) Empty() bool {
	return len(c.Identity)+len(c.Weakened)+len(c.Better)+len(c.Changed)+len(c.New)+len(c.Vanished) == 0
}

// Compare finds the differences between baseline and now. Both may be whole runs
// or baselines. Rows are matched by their IDs; of several with one ID the worst
// counts.
func Compare(baseline, now Run) Changes {
	c := Changes{Was: side(baseline), Is: side(now), Identity: identity(baseline, now)}
	was, is := byID(baseline), byID(now)
	for _, r := range now.sorted() {
		r = is[r.ID]
		before, known := was[r.ID]
		switch {
		case r.ID == "": // already judged with another row of its ID
		case !known:
			c.New = append(c.New, change(Row{}, r))
		default:
			c.judge(before, r)
		}
		is[r.ID] = Row{}
	}
	for _, r := range baseline.sorted() {
		if _, played := is[r.ID]; played || was[r.ID].ID == "" {
			continue
		}
		was[r.ID] = Row{}
		if now.Selection != "" && now.Selection != baseline.Selection {
			c.Unplayed++
			continue
		}
		c.Vanished = append(c.Vanished, change(r, Row{}))
	}
	return c
}

// judge classifies a row that both have. Escaped is weaker than anything, held is
// better than anything, and inconclusive is weaker than held: an update after
// which an attack no longer starts must not count as a defence. If the host or
// the target lacks what the row needs, that is no weakness of the target.
func (c *Changes) judge(was, is Row) {
	before, after := was.judged(), is.judged()
	stood := before == Held || before == Unseen
	switch {
	case before == after && slices.Equal(was.describeOutcome(), is.describeOutcome()):
		c.Same++
	case before == after:
		c.Changed = append(c.Changed, change(was, is))
	case after == Escaped, before == Held && !is.Missing, before == Unseen && after != Held && !is.Missing:
		c.Weakened = append(c.Weakened, change(was, is))
	case after == Held, after == Unseen && !stood:
		c.Better = append(c.Better, change(was, is))
	default:
		c.Changed = append(c.Changed, change(was, is))
	}
}

// byID maps IDs to the rows of r.
func byID(r Run) map[string]Row {
	rows := make(map[string]Row, len(r.Rows))
	for _, row := range r.Rows {
		if have, twice := rows[row.ID]; !twice || badness(row) > badness(have) {
			rows[row.ID] = row
		}
	}
	return rows
}

// badness orders verdicts, the worst highest.
func badness(r Row) int {
	return slices.Index([]string{Held, Residual, Inconclusive, Unseen, Escaped}, r.judged())
}

// change describes a changed row; one of the two may be missing.
func change(was, is Row) Change {
	c := Change{
		ID: cmp.Or(is.ID, was.ID), Class: cmp.Or(is.Class, was.Class), Title: cmp.Or(is.Title, was.Title),
		WasHow: was.describeOutcome(), IsHow: is.describeOutcome(), Reason: is.Reason, Rerun: is.Rerun, Advice: is.Advice,
	}
	if was.ID != "" {
		c.Was = was.judged()
	}
	if is.ID != "" {
		c.Is = is.judged()
	}
	return c
}

func side(r Run) Side { return Side{Target: r.Target, Host: r.Host, Total: r.Total()} }

// identity lists the differences in what was tried, by what and where. CPUs and
// Note do not count: a baseline has no CPUs, and Note is prose.
func identity(was, is Run) []Difference {
	landlock := func(h Host) string {
		if h.Landlock == 0 {
			return "none"
		}
		return strconv.Itoa(h.Landlock)
	}
	all := []Difference{
		{"target", was.Target.Name, is.Target.Name},
		{"version", was.Target.Version, is.Target.Version},
		{"program", was.Target.Path, is.Target.Path},
		{"sha256", was.Target.SHA256, is.Target.SHA256},
		{"called", was.Target.commandLine(), is.Target.commandLine()},
		{"policy", was.Target.Policy, is.Target.Policy},
		{"kernel", was.Host.Kernel, is.Host.Kernel},
		{"system", was.Host.OS, is.Host.OS},
		{"architecture", was.Host.Arch, is.Host.Arch},
		{"user", was.Host.User, is.Host.User},
		{"Landlock", landlock(was.Host), landlock(is.Host)},
		{"played by", strings.TrimSpace(was.Tool + " " + was.Version), strings.TrimSpace(is.Tool + " " + is.Version)},
		{"rows", was.Selection, is.Selection},
	}
	return slices.DeleteFunc(all, func(d Difference) bool { return d.Was == d.Is })
}
