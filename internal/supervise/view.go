package supervise

import (
	"path"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// places finds the position of a path in the view.
type places struct {
	trees map[string]*policy.Tree
	above map[string]bool                    // directories that lead to a tree
	below map[string]map[string]*policy.Tree // trees by their directory and name in it
	most  int                                // bytes of the longest path in trees
}

func newPlaces(v View) *places {
	p := &places{trees: map[string]*policy.Tree{}, above: map[string]bool{}, below: map[string]map[string]*policy.Tree{}}
	for i := range v.Trees {
		t := v.Trees[i]
		t.Path = path.Clean("/" + t.Path)
		p.trees[t.Path] = &t
		p.most = max(p.most, len(t.Path))
		if t.Path == "/" {
			continue
		}
		dir, name := path.Split(t.Path)
		dir = path.Clean(dir)
		if p.below[dir] == nil {
			p.below[dir] = map[string]*policy.Tree{}
		}
		p.below[dir][name] = &t
		for ; !p.above[dir]; dir = path.Dir(dir) {
			p.above[dir] = true
		}
	}
	return p
}

// treeFor returns the tree that decides about an absolute path without links and
// dots, nil for none.
func (p *places) treeFor(at string) *policy.Tree {
	if len(at) > p.most { // a path may have two thousand names: none of these is hashed
		at = at[:max(1, strings.LastIndexByte(at[:p.most+1], '/'))]
	}
	for {
		if t := p.trees[at]; t != nil {
			return t
		}
		if len(at) <= 1 {
			return nil
		}
		at = at[:max(1, strings.LastIndexByte(at, '/'))]
	}
}

// want is what a call needs of its object.
type want uint8

const (
	wantRead   want = iota // the file is opened for reading
	wantWrite              // its content is changed
	wantBoth               // both
	wantExec               // it is executed
	wantCreate             // a name is made
	wantRemove             // a name is taken away
	wantOwner              // what only the owner may change
	wantLook               // it is only looked up
	wantReach              // a socket is connected to
)

// changes reports whether w needs a place that is not for reading alone.
func (w want) changes() bool {
	return w != wantRead && w != wantExec && w != wantReach && w != wantLook
}

// outcome is what a call will come to, as far as can be foreseen.
type outcome struct {
	verdict event.Verdict
	layer   string
	rule    string
	errno   string // name of the error, "" for none or unknown
}

func allowed(errno string) outcome { return outcome{verdict: event.Allowed, errno: errno} }

func denied(layer, rule, errno string) outcome {
	return outcome{verdict: event.Denied, layer: layer, rule: rule, errno: errno}
}
