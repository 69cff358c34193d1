package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// parseItem reads one element of a list, from a file or from a flag.
func parseItem(k key, text string) (e Entry, hint string, err error) {
	e = Entry{Key: k.name, Value: text}
	switch k.kind {
	case paths:
		err = pathText(text)
	case programs:
		err = programText(text)
	case word:
		err = wordText(k, text)
	case gateRules:
		var rule GateRule
		rule, err = gateText(text)
		e.Gate, e.Value = &rule, rule.String()
	case anchors:
		e.Anchor = new(Anchor)
		*e.Anchor, hint, err = anchorText(text)
	case patterns:
		err = patternText(text)
	case names:
		return e, "give the value in full: --env " + printable(text) + "=VALUE, or environment.set", passable(text)
	case losses:
		hint, err = lossText(text)
	case hosts:
		var rule HostRule
		rule, hint, err = destination(text)
		e.Rule, e.Value = &rule, rule.String()
	case ports:
		e.Ports, err = published(text)
	case services:
		var port int
		port, err = portNumber(text)
		e.Ports = []int{port, port}
	}
	return e, hint, err
}

// lossText checks the name of a guarantee whose loss is accepted.
func lossText(text string) (hint string, err error) {
	known := make([]string, len(Losses))
	for i, g := range Losses {
		known[i] = string(g)
	}
	hint = "known: " + strings.Join(known, ", ")
	switch near := nearest(text, known); {
	case slices.Contains(known, text):
		return "", nil
	case text == string(Namespaces):
		return "run it on a host that can make them: 'holdfast doctor' says whether this one can, and how to mend it",
			errors.New("namespaces cannot be given up: without them nothing of the boundary holds")
	case near != "":
		return hint, fmt.Errorf("unknown guarantee %q, did you mean %q?", printable(text), near)
	}
	return hint, fmt.Errorf("unknown guarantee %q", printable(text))
}

// wordText checks the value of a key that takes one of some words.
func wordText(k key, text string) error {
	if slices.Contains(k.words, text) {
		return nil
	}
	if near := nearest(text, k.words); near != "" {
		return fmt.Errorf("unknown value %q, did you mean %q?", printable(text), near)
	}
	return fmt.Errorf("unknown value %q; known: %s", printable(text), strings.Join(k.words, ", "))
}

// pathText checks what can be said of a path before it is opened. A component
// .. is refused because what it leads to depends on the links before it.
func pathText(text string) error {
	text, _ = strings.CutSuffix(text, "?")
	switch {
	case text == "":
		return errors.New("an empty path")
	case strings.ContainsAny(text, "\x00\n\r"):
		return fmt.Errorf("the path \"%s\" contains a NUL or a line break", printable(text))
	case len(text) > 4095:
		return fmt.Errorf("a path of %d bytes; the kernel takes 4095", len(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("the path %q goes up with ..; write the absolute path that is meant", printable(text))
	case strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/"):
		return fmt.Errorf("the path %q names the home of another user; write it in full", printable(text))
	}
	return nil
}

func patternText(text string) error {
	switch {
	case text == "" || strings.ContainsAny(text, "\x00\n\r"):
		return errors.New("an empty pattern, or one with a line break")
	case strings.Trim(text, "/*.") == "" || strings.HasPrefix(text, "~"):
		return fmt.Errorf("the pattern %q; patterns are names, or paths that count from the workspace", printable(text))
	case slices.Contains(strings.Split(text, "/"), ".."):
		return fmt.Errorf("the pattern %q has a component .. in it", printable(text))
	}
	if _, err := path.Match(text, ""); err != nil {
		return fmt.Errorf("the pattern %q: %w", printable(text), err)
	}
	return nil
}

// published reads PORT or HOSTPORT:PORT.
func published(text string) ([]int, error) {
	host, inside, two := strings.Cut(text, ":")
	if !two {
		inside = host
	}
	h, err := portNumber(host)
	if err != nil {
		return nil, err
	}
	i, err := portNumber(inside)
	if err != nil {
		return nil, err
	}
	return []int{h, i}, nil
}

func portNumber(text string) (int, error) {
	n, err := wholeNumber(text)
	if err != nil || n > 65535 {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", printable(text))
	}
	return int(n), nil
}
