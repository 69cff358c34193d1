package text

import "strings"

// Nearest returns the candidate that word was probably meant to be, for a hint
// "did you mean …?"; "" when none is near. Letter case does not count. A third of
// the word and one character may differ.
func Nearest(word string, candidates []string) string {
	w := []rune(strings.ToLower(word))
	best, bound := "", 1+len(w)/3
	for _, c := range candidates {
		if d := distance(w, []rune(strings.ToLower(c)), bound); c != "" && d <= bound {
			best, bound = c, d-1
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
