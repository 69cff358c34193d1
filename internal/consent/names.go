package consent

import "holdfast.dev/holdfast/internal/floor/text"

// LooksLike returns the first word of a name that has letters which pass for
// others, made visible and in quotes; "" if there is none. A review judges
// names of files by it, like requests.
func LooksLike(name string) string {
	if clean(name) {
		return ""
	}
	if words := disguises(name, 1); len(words) > 0 {
		return words[0]
	}
	return ""
}

// Unseen reports whether r is invisible, or changes how others are shown.
// Controls and spaces are not included.
func Unseen(r rune) bool { return text.Invisible(r) }
