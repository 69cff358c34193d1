package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// care is environment.yaml.
type care struct {
	Ours         []string `yaml:"ours"`
	SecretNames  []string `yaml:"secret_names"`
	HostSockets  []string `yaml:"host_sockets"`
	Dangerous    []string `yaml:"dangerous"`
	SecretValues []shaped `yaml:"secret_values"`
}

// shaped is one kind of secret. Expressions are compiled when a value has one
// of the texts, which in nearly every run none has: all of them take as long
// as the rest of a policy.
type shaped struct {
	Has   []string `yaml:"has"`
	Shape string   `yaml:"shape"`
}

var environment = sync.OnceValue(environmentTable)

// variable checks a name as POSIX shells take it: a name with anything else in
// it cannot be set by a shell, but may be parsed by one.
func variable(name string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	if name == "" || len(name) > 256 || strings.Trim(name, letters+"0123456789") != "" || name[0] >= '0' && name[0] <= '9' {
		return fmt.Errorf("%q is not a variable name", printable(name))
	}
	return nil
}

// setVariable checks a variable whose value is given in full.
func setVariable(name, value string) error {
	if err := variable(name); err != nil {
		return err
	}
	if matchName(environment().Ours, name) != "" {
		return fmt.Errorf("%s is set by holdfast, because it describes the inside", name)
	}
	if strings.ContainsRune(value, 0) {
		return fmt.Errorf("the value of %s contains a NUL", name)
	}
	if len(value) > 128<<10-len(name)-2 { // MAX_ARG_STRLEN, execve(2)
		return fmt.Errorf("the value of %s is longer than the 128 KiB that the kernel takes", name)
	}
	return nil
}

// passable checks an entry of environment.pass by its name alone.
func passable(name string) error {
	base, wild := strings.CutSuffix(name, "*")
	if wild && base == "" {
		return errors.New("* would hand in the whole environment")
	}
	if err := variable(base); err != nil {
		return err
	}
	if wild {
		return nil // what it stands for is checked one by one, and left out
	}
	return refusedName(name)
}

// refusedName says why a variable of the caller is not handed in by its name.
func refusedName(name string) error {
	c := environment()
	if matchName(c.Ours, name) != "" {
		return fmt.Errorf("%s is set by holdfast, because it describes the inside", name)
	}
	if p := matchName(c.HostSockets, name); p != "" {
		return fmt.Errorf("%s leads to a helper of the host (%s)", name, p)
	}
	if p := matchName(c.SecretNames, name); p != "" {
		return fmt.Errorf("%s looks like a secret (%s)", name, p)
	}
	if p := matchName(c.Dangerous, name); p != "" {
		return fmt.Errorf("%s makes programs load or execute something (%s)", name, p)
	}
	return nil
}

// secretValue reports whether text has the shape of a known kind of secret.
func secretValue(text string) bool {
	for _, s := range environment().SecretValues {
		if slices.ContainsFunc(s.Has, func(part string) bool { return strings.Contains(text, part) }) &&
			regexp.MustCompile(s.Shape).MatchString(text) {
			return true
		}
	}
	return false
}

// matchName returns the first pattern that name matches, or "".
func matchName(patterns []string, name string) string {
	upper := strings.ToUpper(name)
	for _, p := range patterns {
		if matchStars(p, upper) {
			return p
		}
	}
	return ""
}

// matchStars matches text against a pattern in which * stands for any text.
func matchStars(pattern, text string) bool {
	first, rest, stars := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !ok || !stars {
		return ok && text == ""
	}
	for {
		part, more, stars := strings.Cut(rest, "*")
		if !stars {
			return strings.HasSuffix(text, part)
		}
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
		rest = more
	}
}
