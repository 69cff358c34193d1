//go:build linux

package review

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// act is what Apply does to a path.
type act string

const (
	put    act = "put"    // a new thing is made under a private name and takes the place of what is there
	remove act = "remove" // what is there gets a private name, is looked at, and goes
	rmdir  act = "rmdir"  // an empty directory goes
	chmod  act = "chmod"  // what is there gets other bits
)

// intent is one step of Apply, in the journal before anything is done. The
// journal is in the directory of the review, which no run sees.
type intent struct {
	Step   int            `json:"step"`
	Act    act            `json:"act"`
	Path   workspace.Name `json:"path"`
	Change workspace.Name `json:"change"` // that it belongs to
	Temp   string         `json:"temp"`   // the private name
	Ready  bool           `json:"ready"`  // it is in the directory ready of the review; else beside Path
	Was    targetState    `json:"was"`    // what must be replaced or removed
	Done   *appliedState  `json:"done"`   // what is true of the change when all its steps are done
	Last   bool           `json:"last"`   // it is the last step of its change
}

// note is a line of the journal.
type note struct {
	Intent *intent          `json:"intent,omitempty"`
	Made   []tempInode      `json:"made,omitempty"` // temporaries that are complete
	Lefts  []stepResult     `json:"lefts,omitempty"`
	End    int              `json:"end,omitempty"` // the step is over
	Did    bool             `json:"did,omitempty"` // and was carried out
	Locks  []workspace.Name `json:"locks,omitempty"`
}

// tempInode identifies the inode of the temporary of a step, to distinguish what is found
// under its name from what was swapped out.
type tempInode struct {
	Step int    `json:"step"`
	Ino  uint64 `json:"ino"`
	Dev  uint64 `json:"dev"`
}

// stepResult is what a step makes of its path.
type stepResult struct {
	Step  int   `json:"step"`
	State State `json:"state"`
}

type journal struct {
	d    *disk
	dir  string
	f    *os.File
	open int // steps that are not over
}

func openJournal(d *disk, dir string) (*journal, error) {
	j := &journal{d: d, dir: dir}
	err := d.do("journal", func() (err error) {
		j.f, err = os.OpenFile(dir+"/journal", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	return j, nil
}

// appendNotes appends lines; with sync they are on disk on return.
func (j *journal) appendNotes(sync bool, notes ...note) error {
	var b bytes.Buffer
	b.WriteByte('\n') // ends a line that a full disk cut
	enc := json.NewEncoder(&b)
	for _, n := range notes {
		if err := enc.Encode(n); err != nil {
			return err
		}
	}
	if err := j.d.write(j.f, b.Bytes()); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	if !sync {
		return nil
	}
	if err := j.d.sync(int(j.f.Fd())); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

// close removes the journal if every step is over.
func (j *journal) close() error {
	err := j.f.Close()
	if j.open > 0 || err != nil {
		return err
	}
	return j.d.do("journal", func() error { return os.Remove(j.dir + "/journal") })
}

// journalState is what the journal of an apply that died says.
type journalState struct {
	steps []*intent
	made  map[int]tempInode
	left  map[int]State
	ended map[int]bool // true: it was carried out
	locks []workspace.Name
}

// readJournal reads the journal of an apply that died; nil: none did. A line
// that was not finished is the end.
func readJournal(dir string) (*journalState, error) {
	f, err := os.Open(dir + "/journal")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal: %w", err)
	}
	defer f.Close()
	s := &journalState{made: map[int]tempInode{}, left: map[int]State{}, ended: map[int]bool{}}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return s, nil
			}
			return nil, fmt.Errorf("reading the journal: %w", err)
		}
		var n note
		if err := json.Unmarshal(line, &n); err != nil {
			continue // an empty line, or one that a full disk cut
		}
		switch {
		case n.Intent != nil:
			s.steps = append(s.steps, n.Intent)
		case n.End > 0:
			s.ended[n.End] = n.Did
		}
		s.locks = append(s.locks, n.Locks...)
		for _, m := range n.Made {
			s.made[m.Step] = m
		}
		for _, l := range n.Lefts {
			s.left[l.Step] = l.State
		}
	}
}
