package rules

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/floor/expr"
)

// setFiles have the examples of each rule, which the compiled table leaves out.
//
//go:embed sets/*.yaml
var setFiles embed.FS

// shownExample is an attempt that a rule asks about or permits: a command line,
// or its parts.
type shownExample struct {
	Argv, Action, Operation, Path, To, Host, Executable string
	Port                                                int
}

func (e *shownExample) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		e.Argv = n.Value
		return nil
	}
	type plain shownExample
	return n.Decode((*plain)(e))
}

const setsIntro = `# Rule sets of consent

A set is named under %[1]sask%[1]s or %[1]sdeny%[1]s of a policy:

%[1]s%[1]s%[1]syaml
ask:
  - git-push
  - {set: new-hosts, attended: true}
  - {set: infrastructure, when: 'verb in ["apply", "delete"]'}
  - {when: 'action == "exec" && program == "make" && verb == "deploy"', reason: this reaches production}
%[1]s%[1]s%[1]s

## What is compared

What the kernel would execute is compared, not the text of a command line:

- **The file**, every link followed. It counts by its name, by that of the link that was asked for, by what the
  caller calls it (%[1]sargv[0]%[1]s), and without its version (%[1]spython3.11%[1]s is %[1]spython3%[1]s and %[1]spython%[1]s). A copy or a hard
  link outside of what is read-only is recognised by its hash, when it is that of a program that a rule names and
  that stands in %[1]sPATH%[1]s. **A copy in which one byte was changed is another program**, and so is one that
  was built anew: no rule knows it. What cannot be read there (a copy of mode 0111), or changes while it is read,
  may be any program: every rule about commands is met that its command line alone does not rule out.
- **What the dynamic loader loads** (%[1]sld.so [OPTION]… PROGRAM%[1]s), what an **emulator** of a processor executes
  (%[1]sqemu-x86_64 PROGRAM%[1]s, %[1]svalgrind%[1]s), and the **applet** of busybox, toybox or coreutils.
  What a loader or an emulator is to load from where something inside can write, or by a descriptor, may be any program.
- **A script and its interpreter**: both count, whether the kernel starts the one for the other (%[1]s#!%[1]s, with what stands behind it)
  or the script is an argument (%[1]snode …/npm-cli.js%[1]s, %[1]spython3 -m pip%[1]s).
- **The verb**, which is found behind the program's own options (%[1]sgit -C x -c a=b push%[1]s), whose abbreviations and aliases
  are written out (%[1]snpm i%[1]s, %[1]sgem inst%[1]s). Where it is not known whether an option has a value, both readings count.
- **Programs that execute others** (%[1]senv%[1]s, %[1]snice%[1]s, %[1]sxargs%[1]s, %[1]stimeout%[1]s, %[1]ssh -c%[1]s, %[1]sfind -exec%[1]s, %[1]smake%[1]s, a script of a
  shell, an alias of git) need no reading: what they execute is an execution of its own, and is compared then.
- Of more than six programs one in another without an execution (%[1]sbusybox busybox …%[1]s), or more than 64 ways to read
  one command line, the rest may be any program too.

A rule is met when any reading meets it, and a condition that cannot be evaluated counts as met.
Of several rules one under %[1]sdeny%[1]s decides, then one that asks in any case, then one that asks while somebody is there.

## What a condition can name

Conditions are written in a part of the Common Expression Language, as for %[1]sholdfast log query%[1]s. What an action does not have is empty.
A condition that does not say which %[1]saction%[1]s is meant is about those that have what it names.

| name | type | meaning |
| --- | --- | --- |
`

// Reference returns the shipped rule sets as Markdown, for `holdfast reference rule-sets`.
func Reference() (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, setsIntro, "`")
	for _, f := range expr.AttemptVocabulary() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Type, f.Meaning)
	}
	b.WriteString("\nFor a shell or an interpreter, `verb` says where its program comes from: `stream` (standard input or a descriptor), `inline` (its arguments), `file` or `module`.\n\n" +
		"Besides what the language has, a path has `path.under(\"/dir\")` and `path.base()`, and a text `text.lowerAscii()`.\n\n## The sets\n\n| set | about |\n| --- | --- |\n")
	sets := Sets()
	for _, s := range sets {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", s.Name, s.Name, s.Title)
	}
	for _, s := range sets {
		fmt.Fprintf(&b, "\n### %s\n\n**%s.** %s\n\nIt cannot see: %s\n", s.Name, s.Title, onOneLine(s.Text), onOneLine(s.Blind))
		data, err := setFiles.ReadFile("sets/" + s.Name + ".yaml")
		if err != nil {
			return "", err
		}
		var file struct {
			Rules []struct {
				Asks, Passes []shownExample
			}
		}
		if err := yaml.Unmarshal(data, &file); err != nil {
			return "", fmt.Errorf("reading the examples of %s: %w", s.Name, err)
		}
		for i, r := range s.Rules {
			fmt.Fprintf(&b, "\n#### %s/%s\n\n%s.\n\n```\n%s\n```\n\n", s.Name, r.ID, strings.ToUpper(r.Reason[:1])+r.Reason[1:], strings.TrimSpace(r.When))
			fmt.Fprintf(&b, "Asks about %s.\n\nDoes not ask about %s.\n", examplesText(file.Rules[i].Asks), examplesText(file.Rules[i].Passes))
		}
	}
	return b.String(), nil
}

func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// examplesText lists the examples that can be read: command lines, files and hosts.
func examplesText(all []shownExample) string {
	var out []string
	for _, e := range all {
		text := e.Argv
		switch {
		case e.Action == "file":
			text = strings.TrimSpace(e.Operation + " " + e.Path + " " + e.To)
		case e.Host != "":
			text = fmt.Sprintf("%s:%d", e.Host, e.Port)
		case e.Executable != "" || strings.Contains(text, "`"):
			continue
		}
		if text = "`" + text + "`"; !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}
