package expr

import "slices"

func (n *node) order(f *frame) (holds bool, err error) {
	a, b, err := n.evalBoth(f)
	if err != nil {
		return false, err
	}
	c := compare(a, b)
	switch n.name {
	case "<":
		holds = c < 0
	case "<=":
		holds = c <= 0
	case ">":
		holds = c > 0
	case ">=":
		holds = c >= 0
	}
	return holds, f.spend(min(len(a.text), len(b.text)) / 16)
}

func (n *node) equal(f *frame) (bool, error) {
	if n.args[0].typ == tText {
		a, b, err := n.texts(f)
		if err != nil || len(a) != len(b) {
			return false, err
		}
		return a == b, f.spend(len(a) / 16)
	}
	a, b, err := n.evalBoth(f)
	if err != nil {
		return false, err
	}
	return f.equal(a, b), nil
}

// equal compares two values of one type.
func (f *frame) equal(a, b value) bool {
	if a.ref == nil {
		if len(a.text) != len(b.text) {
			return false
		}
		_ = f.spend(len(a.text) / 16)
		return a.n == b.n && a.text == b.text
	}
	length := a.length()
	if length != b.length() || length == 0 {
		return length == b.length() && a.time().Equal(b.time())
	}
	for i := range length {
		if f.spend(1) != nil || !f.equal(a.element(i), b.element(i)) {
			return false
		}
	}
	return true
}

// evalIn reports whether a list has an element, or a map a key.
func (n *node) evalIn(f *frame) (bool, error) {
	if n.args[0].typ != tText {
		a, b, err := n.evalBoth(f)
		if err != nil {
			return false, err
		}
		for i := range b.length() {
			if err := f.spend(1); err != nil || f.equal(a, b.element(i)) {
				return err == nil, err
			}
		}
		return false, nil
	}
	text, err := n.args[0].words(f)
	if err != nil {
		return false, err
	}
	of, err := n.args[1].elements(f)
	if err != nil {
		return false, err
	}
	switch all := of.(type) {
	case []string:
		return slices.Contains(all, text), f.spend(len(all) * (1 + len(text)/16))
	case []value:
		for _, v := range all {
			if v.text == text {
				return true, nil
			}
		}
		return false, f.spend(len(all) * (1 + len(text)/16))
	}
	_, found, err := f.key(value{ref: of}, text)
	return found, err
}
