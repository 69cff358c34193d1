//go:build linux

package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// stateHarm finds what a file of an operation that git has under way (a rebase,
// cherry-pick, revert, am or bisection) could make git execute or write: by the
// pattern of a judged rule, the statements in the file that git itself writes
// only when its user asked for them. An empty list lets the file stay.
var stateHarm = map[string]func(data []byte) []string{
	"sequencer/opts":               harmOfOptions,
	"rebase-merge/git-rebase-todo": harmOfSteps,
	"rebase-merge/strategy":        harmOfLine("names the merge strategy", isStrategy),
	"rebase-merge/strategy_opts":   harmOfArguments(strategyOption),
	"rebase-merge/gpg_sign_opt":    harmOfLine("has the option", isSigning),
	"rebase-merge/author-script":   harmOfAuthor,
	"rebase-apply/apply-opt":       harmOfArguments(applyOption),
	"rebase-apply/strategy":        harmOfLine("names the merge strategy", isStrategy),
	"rebase-apply/strategy_opts":   harmOfArguments(strategyOption),
	"rebase-apply/gpg_sign_opt":    harmOfLine("has the option", isSigning),
	"rebase-apply/author-script":   harmOfAuthor,
	"BISECT_START":                 harmOfLine("names", isStart),
	"BISECT_NAMES":                 harmOfArguments(pattern(`^[^-]|^--$`)),
}

var (
	// strategies are the merge strategies that git has; any other is a program
	// git-merge-NAME, and a name with a slash is one of the tree.
	strategies = []string{"ort", "recursive", "resolve", "octopus", "ours", "subtree"}

	strategyOption = pattern(`^(--)?(ours|theirs|patience|histogram|renormalize|no-renormalize|no-renames|` +
		`ignore-space-change|ignore-all-space|ignore-space-at-eol|ignore-cr-at-eol|diff-algorithm=[a-z]+|` +
		`find-renames(=[0-9]+%?)?|rename-threshold=[0-9]+%?|subtree(=[A-Za-z0-9._/-]*)?)$`)
	// applyOption leaves out --build-fake-ancestor, which writes to the file that
	// it names, and --unsafe-paths.
	applyOption = pattern(`^(-[pC][0-9]+|-3|--3way|--reject|--whitespace=[a-z-]+|--ignore-whitespace|--ignore-space-change|` +
		`--recount|--inaccurate-eof|--(directory|exclude|include)=[^-].*)$`)

	signingRE = pattern(`^-S[A-Za-z0-9 <>@.,_+-]*$`)
	authorRE  = pattern(`^GIT_AUTHOR_(NAME|EMAIL|DATE)='([^']|'\\''|'\\!')*'$`)
	startRE   = pattern(`^[A-Za-z0-9_./@{}+][A-Za-z0-9_./@{}+#=-]*$`)
)

func isStrategy(s string) bool { return slices.Contains(strategies, s) }
func isSigning(s string) bool  { return signingRE().MatchString(s) }
func isStart(s string) bool    { return startRE().MatchString(s) }

// harmOfOptions judges sequencer/opts, which git reads like a configuration.
func harmOfOptions(data []byte) []string {
	c, err := parseConfig(data)
	if err != nil || c.unusual {
		return []string{notGits(data)}
	}
	var harm []string
	for _, s := range c.settings {
		if !optionIsHarmless(s) {
			harm = append(harm, fmt.Sprintf("sets %q to %q", s.name(), s.value))
		}
	}
	return harm
}

func optionIsHarmless(s setting) bool {
	if s.section != "options" || s.hasSub {
		return false
	}
	switch s.key {
	case "strategy":
		return isStrategy(s.value)
	case "strategy-option":
		return strategyOption().MatchString(s.value)
	case "gpg-sign":
		return isSigning("-S" + s.value)
	case "mainline":
		return digits(s.value)
	case "default-msg-cleanup":
		return slices.Contains([]string{"default", "verbatim", "whitespace", "strip", "scissors"}, s.value)
	}
	return s.bare || boolean(s.value)
}

// steps are the commands of a list of steps (git-rebase(1)) that execute nothing.
var steps = []string{"p", "pick", "r", "reword", "e", "edit", "s", "squash", "f", "fixup", "b", "break", "d", "drop", "l", "label",
	"t", "reset", "m", "merge", "u", "update-ref", "noop", "revert"}

// harmOfSteps judges the steps of a rebase. Git splits a line at blanks, tabs and
// carriage returns.
func harmOfSteps(data []byte) []string {
	var harm []string
	for line := range strings.SplitSeq(string(data), "\n") {
		word, _, _ := strings.Cut(strings.Map(func(r rune) rune {
			if r == '\t' || r == '\r' || r == 0 {
				return ' '
			}
			return r
		}, strings.TrimLeft(line, " \t\r")), " ")
		if word != "" && word[0] != '#' && !slices.Contains(steps, word) {
			harm = append(harm, fmt.Sprintf("has the step %q", short([]byte(line))))
		}
	}
	return harm
}

// harmOfLine judges a file of one line; says is the text for a harmful one.
func harmOfLine(says string, harmless func(string) bool) func([]byte) []string {
	return func(data []byte) []string {
		text := strings.TrimRight(string(data), "\n")
		if text == "" || harmless(text) {
			return nil
		}
		return []string{fmt.Sprintf(says+" %q", short([]byte(text)))}
	}
}

// harmOfArguments judges a list of arguments, quoted for a shell.
func harmOfArguments(harmless func() *regexp.Regexp) func([]byte) []string {
	return func(data []byte) []string {
		words, ok := unquoted(strings.TrimRight(string(data), "\n"))
		if !ok {
			return []string{notGits(data)}
		}
		var harm []string
		for _, w := range words {
			if !harmless().MatchString(w) {
				harm = append(harm, fmt.Sprintf("has the argument %q", short([]byte(w))))
			}
		}
		return harm
	}
}

// unquoted splits what git has quoted (quote.c): words in single quotes, or of plain
// characters, with blanks between them.
func unquoted(s string) (words []string, ok bool) {
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		var word strings.Builder
		for s != "" && s[0] != ' ' {
			switch {
			case s[0] == '\'':
				end := strings.IndexByte(s[1:], '\'')
				if end < 0 {
					return nil, false
				}
				word.WriteString(s[1 : 1+end])
				s = s[end+2:]
			case len(s) > 1 && s[0] == '\\' && (s[1] == '\'' || s[1] == '!'):
				word.WriteByte(s[1])
				s = s[2:]
			case strings.IndexByte("\"\\`$;&|<>()*?[]#~%!\n\t\r\x00", s[0]) >= 0:
				return nil, false
			default:
				word.WriteByte(s[0])
				s = s[1:]
			}
		}
		words = append(words, word.String())
	}
	return words, true
}

func harmOfAuthor(data []byte) []string {
	for line := range strings.SplitSeq(strings.TrimRight(string(data), "\n"), "\n") {
		if line != "" && !authorRE().MatchString(line) {
			return []string{notGits(data)}
		}
	}
	return nil
}

// notGits describes a whole file that git has not written.
func notGits(data []byte) string {
	sum := sha256.Sum256(data)
	return "is not in the form that git writes (" + hex.EncodeToString(sum[:6]) + ")"
}

// IsGitState reports whether rel, the path of a file in a git directory, is judged by
// GitStateHarm.
func IsGitState(rel string) bool { return stateHarm[rel] != nil }

// GitStateHarm says why rel, the path of a file in a git directory, may not have
// the content now where it had was; "" if it may, or is no such file.
func GitStateHarm(rel string, now, was []byte) string {
	judge := stateHarm[rel]
	if judge == nil {
		return ""
	}
	had := judge(was)
	for _, h := range judge(now) {
		if !slices.Contains(had, h) {
			return "it " + h
		}
	}
	return ""
}

// stateSum identifies a statement of a judged file of any repository.
func stateSum(pattern, statement string) string {
	sum := sha256.Sum256([]byte(pattern + "\x00" + statement))
	return hex.EncodeToString(sum[:12])
}

// state notes what a judged file said when the run began: that may stay.
func (s *scan) state(d *dir, e entry) {
	if !s.budget.affordsSmall(d.fd, e.nameZ) {
		return // at the end all that it says counts as new
	}
	data, ok := readFile(d.fd, string(e.name()), MaxConfig)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range stateHarm[e.rule.Pattern](data) {
		s.found.States = append(s.found.States, stateSum(e.rule.Pattern, h))
	}
}

// state says why a judged file may not stay; "" lets it stay.
func (v *settle) state(d *dir, e entry) string {
	if !v.budget.affordsSmall(d.fd, e.nameZ) {
		return unread
	}
	data, ok := readFile(d.fd, string(e.name()), MaxConfig)
	if !ok {
		return "it is not a plain file"
	}
	for _, h := range stateHarm[e.rule.Pattern](data) {
		if !slices.Contains(v.t.States, stateSum(e.rule.Pattern, h)) {
			return "it " + h
		}
	}
	return ""
}

// isUnlisted reports whether a file of git's that a rule lists needs no line: the
// exclude file that git init makes, and the end and the packs of a history that was
// cloned during the run.
func (v *settle) isUnlisted(d *dir, e entry, rel string) bool {
	if e.rule.Where != InGit {
		return false
	}
	switch e.rule.Pattern {
	case "info/exclude":
		data, ok := readFile(d.fd, string(e.name()), MaxConfig)
		return ok && v.marks[rel] == nil && onlyComments(data)
	case "shallow", "objects/pack/*.idx":
		return !v.inKnown(parent(rel))
	}
	return false
}

// inKnown reports whether dir is, or lies in, a repository of the start.
func (v *settle) inKnown(dir string) bool {
	for ; ; dir = parent(dir) {
		if v.repos[dir] {
			return true
		}
		if dir == "" {
			return false
		}
	}
}

func onlyComments(data []byte) bool {
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if line = bytes.TrimRight(line, "\r"); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
