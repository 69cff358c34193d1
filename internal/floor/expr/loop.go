package expr

import "fmt"

func (f *frame) index(a, b value) (value, error) {
	switch a.ref.(type) {
	case []string, []value:
		if b.n < 0 || b.n >= int64(a.length()) {
			return value{}, fmt.Errorf("index %d is outside a list of %d", b.n, a.length())
		}
		return a.element(int(b.n)), nil
	}
	text, _, err := f.key(a, b.text)
	return value{text: text}, err
}

// list makes a list. Of literals it is made once, without a frame.
func (n *node) list(f *frame) (value, error) {
	if n.constant {
		return n.value, nil
	}
	if n.typ == tTexts {
		all := make([]string, len(n.args))
		for i, a := range n.args {
			v, err := a.eval(f)
			if err != nil {
				return value{}, err
			}
			all[i] = v.text
		}
		return value{ref: all}, nil
	}
	all := make([]value, len(n.args))
	for i, a := range n.args {
		v, err := a.eval(f)
		if err != nil {
			return value{}, err
		}
		all[i] = v
	}
	return value{ref: all}, nil
}

// search is exists and all, which one element decides, whatever becomes of the
// others.
func (n *node) search(f *frame, decisive bool) (bool, error) {
	all, err := n.args[0].elements(f)
	if err != nil {
		return false, err
	}
	over := value{ref: all}.keys()
	texts, areTexts := over.ref.([]string)
	f.bound = value{}
	var failed error
	for i := range over.length() {
		if err := f.spend(n.size); err != nil {
			return false, err
		}
		if areTexts {
			f.bound.text = texts[i]
		} else {
			f.bound = over.element(i)
		}
		holds, err := n.args[1].evalBool(f)
		switch {
		case err != nil:
			failed = err
		case holds == decisive:
			return decisive, nil
		}
	}
	return !decisive, failed
}

// collect makes a list of the elements that filter, map and exists_one are about.
// It fails with any of them.
func (n *node) collect(f *frame) (value, error) {
	over, err := n.args[0].eval(f)
	if err != nil {
		return value{}, err
	}
	over = over.keys()
	var kept []value
	last := n.args[len(n.args)-1]
	for i := range over.length() {
		if err := f.spend(n.size); err != nil {
			return value{}, err
		}
		f.bound = over.element(i)
		if n.name != "map" || len(n.args) > 2 {
			holds, err := n.args[1].evalBool(f)
			if err != nil {
				return value{}, err
			}
			if !holds {
				continue
			}
		}
		v := f.bound
		if n.name == "map" {
			if v, err = last.eval(f); err != nil {
				return value{}, err
			}
		}
		kept = append(kept, v)
	}
	return value{ref: kept}, nil
}
