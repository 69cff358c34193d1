package report

import (
	"fmt"
	"strings"
)

// Tally counts rows by verdict.
type Tally struct {
	Held         int `json:"held"`
	Escaped      int `json:"escaped"`
	Residual     int `json:"residual"`
	Inconclusive int `json:"inconclusive"`
	Unseen       int `json:"unseen"`
}

// ClassTally is the tally of a class.
type ClassTally struct {
	Class string `json:"class"`
	Tally Tally  `json:"tally"`
}

// PromiseTally is the tally of a promise.
type PromiseTally struct {
	Promise string `json:"promise"`
	Tally   Tally  `json:"tally"`
}

func (t *Tally) add(verdict string) {
	switch verdict {
	case Held:
		t.Held++
	case Escaped:
		t.Escaped++
	case Residual:
		t.Residual++
	case Unseen:
		t.Unseen++
	default:
		t.Inconclusive++
	}
}

// Rows is the number of counted rows.
func (t Tally) Rows() int { return t.Held + t.Escaped + t.Residual + t.Inconclusive + t.Unseen }

// part is one number of a tally with its verdict.
type part struct {
	verdict string
	n       int
}

// parts are the numbers of t, the worst first.
func (t Tally) parts() []part {
	return []part{{Escaped, t.Escaped}, {Unseen, t.Unseen}, {Inconclusive, t.Inconclusive}, {Residual, t.Residual}, {Held, t.Held}}
}

// String is the tally without zeros, such as "2 ESCAPED, 10 held".
func (t Tally) String() string {
	var words []string
	for _, p := range t.parts() {
		if p.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", p.n, p.verdict))
		}
	}
	if len(words) == 0 {
		return "no rows"
	}
	return strings.Join(words, ", ")
}

// Total counts all rows.
func (r Run) Total() Tally {
	var t Tally
	for _, row := range r.Rows {
		t.add(row.judged())
	}
	return t
}

// Classes counts the rows of each class, in the order of their names.
func (r Run) Classes() []ClassTally {
	var all []ClassTally
	for _, row := range r.sorted() {
		if len(all) == 0 || all[len(all)-1].Class != row.Class {
			all = append(all, ClassTally{Class: row.Class})
		}
		all[len(all)-1].Tally.add(row.judged())
	}
	return all
}

// Promises counts the rows of each promise, P1 to P10. A row that was held
// without a trace counts as held for its own promise, and as unseen for recorded,
// whatever its own promise is: contained is not enough.
func (r Run) Promises() []PromiseTally {
	all := make([]PromiseTally, len(Promises))
	at := map[string]*Tally{}
	for i, p := range Promises {
		all[i].Promise = p.ID
		at[p.ID] = &all[i].Tally
	}
	for _, row := range r.Rows {
		verdict := row.judged()
		if verdict == Unseen {
			at[recorded].add(Unseen)
			if row.Promise == recorded {
				continue
			}
			verdict = Held
		}
		if t := at[row.Promise]; t != nil {
			t.add(verdict)
		}
	}
	return all
}
