package text

import "strings"

// Nearest returns the candidate that word was probably meant to be, for a hint "did you
// mean …?"; "" if none is near. Letter case does not count. A third of the longer one
// and one character may differ; of candidates that differ equally the first is taken.
func Nearest(word string, candidates []string) string {
	w := []rune(strings.ToLower(word))
	best, least := "", len(w)+1
	for _, candidate := range candidates {
		c := []rune(strings.ToLower(candidate))
		bound := min(least-1, 1+max(len(w), len(c))/3)
		if d := distance(w, c, bound); len(c) > 0 && d <= bound {
			best, least = candidate, d
		}
	}
	return best
}

// distance is the number of characters to change, add or remove to get from a to
// b (Levenshtein 1965), or a number above limit.
func distance(a, b []rune, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
