package consent

import "holdfast.dev/holdfast/internal/floor/text"

// LooksLike returns the first word of a name that holds letters which pass for
// others, made visible and in quotes; "" where there is none. A review judges the
// names of files by it, as requests are judged.
func LooksLike(name string) string {
	if clean(name) {
		return ""
	}
	if words := disguises(name, 1); len(words) > 0 {
		return words[0]
	}
	return ""
}

// Unseen reports whether r shows as nothing, or changes how others show. Controls
// and spaces are not among them.
func Unseen(r rune) bool { return text.Invisible(r) }
