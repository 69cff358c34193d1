package story

import (
	"cmp"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// FileRefusal is a path that programs inside were refused, with what they met there.
type FileRefusal struct {
	Path  string // absolute
	To    string // absolute; the other name of a rename or link, "" for none
	Layer string // protected, hidden or readonly, or consent for event.KeptWorktrees: see package event
	Rule  string // pattern of the rule; "" for a built-in default
	Count uint64
}

// maxRefused is how many paths are known.
const maxRefused = 200

// FileRefusals collects the calls on files that the boundary refused: a file that is there
// and may not be changed, or not be read, and a worktree that would be lost. A path that is out of view is none of them, for
// programs look up many of those. It is for one goroutine.
type FileRefusals struct {
	paths map[string]*FileRefusal
	order []*FileRefusal
	more  uint64
}

// Add takes the next event.
func (r *FileRefusals) Add(e *event.Event) {
	layer := e.Layer
	if layer == event.LayerView && e.Error == "EROFS" {
		layer = event.LayerReadonly
	}
	known := layer == event.LayerProtected || layer == event.LayerHidden || layer == event.LayerReadonly || e.Rule == event.KeptWorktrees
	if e.Verdict != event.Denied || !known || !strings.HasPrefix(e.Action, "file.") || e.Action == event.FileLookup || e.Action == event.FileQuarantine {
		return
	}
	at := foundPath(e)
	one := r.paths[at]
	if one == nil {
		if len(r.paths) == maxRefused {
			r.more++
			return
		}
		if r.paths == nil {
			r.paths = map[string]*FileRefusal{}
		}
		one = &FileRefusal{Path: strings.Clone(at), To: strings.Clone(cmp.Or(e.Detail["to_resolved"], e.Detail["to"])), Layer: layer, Rule: strings.Clone(e.Rule)}
		r.paths[one.Path] = one
		r.order = append(r.order, one)
	}
	one.Count += 1 + parseCount(e.Detail["again"])
}

// List returns the paths in the order in which they were refused first, and how many
// more refusals there were of others.
func (r *FileRefusals) List() ([]FileRefusal, uint64) {
	out := make([]FileRefusal, len(r.order))
	for i, one := range r.order {
		out[i] = *one
	}
	return out, r.more
}
