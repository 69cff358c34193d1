package policy

import (
	"fmt"
	"strings"
)

// splitWords splits a command that is written as one text. It knows spaces and
// quotes only. What a shell would do something with is refused, so that nobody
// takes the text for a line of a shell.
func splitWords(text string) ([]string, error) {
	const special = "$`|;&<>()*?[\\\n\r"
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range text {
		switch {
		case quote == 0 && (r == ' ' || r == '\t'):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
			continue
		case r == quote:
			quote = 0
			continue
		case quote == 0 && strings.ContainsRune(special, r), quote == '"' && strings.ContainsRune("$`\\", r):
			return nil, fmt.Errorf("the command contains %q, and no shell reads it", string(r))
		case r == 0:
			return nil, fmt.Errorf("the command contains a NUL")
		}
		word.WriteRune(r)
		inWord = true
	}
	if quote != 0 {
		return nil, fmt.Errorf("the command has a quote that does not end")
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, fmt.Errorf("the command is empty")
	}
	return words, nil
}
