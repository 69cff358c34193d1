package network

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// nearest says why no rule permits a destination, and which one came closest, as
// file:line; "" for none. Port 0 means the name by itself.
func (r *Rules) nearest(name string, port int) (reason, rule string) {
	ports := map[int]bool{}
	for c := range r.matching(name) {
		if rule == "" {
			rule = c.Origin.String()
		}
		for _, p := range c.Ports {
			ports[p] = true
		}
	}
	if rule != "" {
		var list []string
		for _, p := range slices.Sorted(maps.Keys(ports)) {
			list = append(list, strconv.Itoa(p))
		}
		return fmt.Sprintf("port %d is not allowed, only %s", port, strings.Join(list, ", ")), rule
	}
	if isSuffix := r.below[name]; len(isSuffix) > 0 {
		return fmt.Sprintf("*.%s allows what is below it, not the name itself", name), isSuffix[0].Origin.String()
	}
	if near := r.neighbour(name); near != nil {
		return fmt.Sprintf("no rule allows it; %s is allowed", near.Host), near.Origin.String()
	}
	return "no rule allows it", ""
}

// neighbour is a rule for a name that shares all but the first label with name,
// or is directly above or below it.
func (r *Rules) neighbour(name string) *rule {
	_, parent, _ := strings.Cut(name, ".")
	if !strings.Contains(parent, ".") {
		parent = ""
	}
	for _, other := range r.names {
		_, above, _ := strings.Cut(other, ".")
		if other == parent || above == name || parent != "" && above == parent {
			return r.exact[other][0]
		}
	}
	return nil
}
