package detect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

const intro = `# Detection rules

Holdfast compares each recorded event with these rules during the run. An alert refuses
nothing: its action was already allowed or denied. Each alert is recorded
(%[1]salert.raise%[1]s), sent to the sinks in %[1]salerts.sinks%[1]s of the policy, and listed by
%[1]sholdfast alerts%[1]s.

A rule raises one alert for each different thing (its key), and repeats it with the count
at the 10th, 100th and so on occurrence. After %[2]d different things, a rule counts the
rest under %[1]s%[3]s%[1]s.

Some rules exempt programs by name, or lower the severity for them. A name can be forged:
it silences an alert and permits nothing. An agent may look up its own login if its
program lies where nothing inside can write, or where installers put programs, and if the
user started it directly. An agent that another program starts has no such exemption.

## Rules of your own

A directory that the policy names in %[1]salerts.rules%[1]s has files %[1]s*.yaml%[1]s, each a list:

%[1]s%[1]s%[1]syaml
- id: acme-deploy-key
  title: The deploy key was asked for
  severity: high                # info, low, medium, high or critical
  technique: [T1552.004]        # of ATT&CK %[4]s, or of ATLAS (AML.T0051)
  explanation: Nothing in a run needs it.
  false_positives: None.
  actions: [file.lookup, file.open, file.write]
  objects: [/home/you/.ssh/deploy] # optional: one of these, exactly
  verdict: denied               # optional: denied, allowed or unknown
  marks: [credential]           # optional: at least one of these
  unless: [dependency]          # optional: none of these
  condition: object.contains("deploy")   # optional: CEL, as for holdfast log query
  key: [target]                 # optional: what tells one alert from another
  tests:
    raises:
      - {action: file.open, object: /home/you/.ssh/deploy, verdict: denied}
    honest:
      - {action: file.open, object: /home/you/project/deploy.go, verdict: allowed}
%[1]s%[1]s%[1]s

%[1]sholdfast alerts test FILE%[1]s runs the tests. A rule needs both kinds. A rule without them,
or a file with an unknown key, is refused, and the run does not start. Tests assume
the workspace /home/you/project of a user whose home is /home/you; %[1]stimes%[1]s repeats an event,
with %[1]s%%d%[1]s for its number, and %[1]safter%[1]s lets time pass.

A correlation looks at several events of one session, as Sigma 2.1 does:

| type | raised when |
| --- | --- |
| %[1]sevent_count%[1]s | %[1]sat_least%[1]s events come within %[1]swindow%[1]s |
| %[1]svalue_count%[1]s | so many different values of %[1]sfield%[1]s do |
| %[1]stemporal%[1]s | every one of %[1]ssteps%[1]s happens within %[1]swindow%[1]s, in any order |
| %[1]stemporal_ordered%[1]s | they happen in their order |

A step names %[1]srules%[1]s, any of which counts, or has events of its own (%[1]sactions%[1]s and so on).
With %[1]sby%[1]s, only events with the same fields are counted together. Events that are stamped
out of order by different sensors are put in order by their time.

`

// Reference returns the built-in rules, and how rules are written, as Markdown, for
// `holdfast reference rules`.
func Reference() string {
	var b bytes.Buffer
	rules := builtin()
	fmt.Fprintf(&b, intro, "`", keptAlerts, overflow, Attack)
	b.WriteString("### Fields to group by\n\n| field | meaning |\n| --- | --- |\n")
	for _, f := range groupFields {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f[0], f[1])
	}
	b.WriteString("| `detail.NAME` | a detail of the event |\n\n### Marks\n\nOf paths and hosts; the second path of an event has them after `to:`, as in `\"to:credential\"`.\n\n")
	b.WriteString(wordsOf(markNames[:]))
	b.WriteString("\nConditions have `kept` besides, of a change that went into the private home, or found nothing there, at a place where the host executes or obeys what the home has.\n")
	b.WriteString("\nOf the program that asked. Before the condition they can be asked for where something is executed; conditions have them everywhere.\n\n")
	b.WriteString(wordsOf(traitNames[:]))
	b.WriteString(news())
	fmt.Fprintf(&b, "\n## The rules\n\nThere are %d.\n\n| rule | severity | technique | |\n| --- | --- | --- | --- |\n", len(rules))
	sorted := slices.Clone(rules)
	slices.SortStableFunc(sorted, func(a, b Rule) int { return b.Severity.Level() - a.Severity.Level() })
	for _, r := range sorted {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", r.ID, r.ID, r.Severity, strings.Join(r.Technique, " "), r.Title)
	}
	for _, r := range rules {
		fmt.Fprintf(&b, "\n### %s\n\n**%s** (%s)\n\n%s\n\n", r.ID, r.Title, r.Severity, r.Explanation)
		for _, id := range r.Technique {
			fmt.Fprintf(&b, "- %s %s\n", id, TechniqueName(id))
		}
		fmt.Fprintf(&b, "- False positives: %s\n", r.FalsePositives)
		if r.Note != "" {
			fmt.Fprintf(&b, "- %s\n", r.Note)
		}
		fmt.Fprintf(&b, "- %s\n", whenOf(r))
	}
	return b.String()
}

// news explains the kinds of things that can be new.
func news() string {
	return "\n### What is new\n\nIf the workspace has a baseline (`holdfast log baseline learn`), a rule can ask with `new` for events of which something is new by it: " +
		"`new: [host, program]`. In a workspace without one nothing is new. Each thing is new once in a run. In `tests`, a session `normal` is what the baseline is learnt from. " +
		"The kinds are:\n\n`" + strings.ReplaceAll(kindNames(), ", ", "`, `") + "`\n"
}

func wordsOf(names []string) string { return "`" + strings.Join(names, "`, `") + "`\n" }

// whenOf says what a rule looks at.
func whenOf(r Rule) string {
	c := r.Correlation
	if c == nil {
		return "Events: " + matchOf(r.Match)
	}
	if !r.isTemporal() {
		what := "events"
		if c.Field != "" {
			what = "different values of `" + c.Field + "`"
		}
		by := ""
		if len(c.By) > 0 {
			by = " with the same `" + strings.Join(c.By, "`, `") + "`"
		}
		return fmt.Sprintf("At least %d %s%s within %s, of: %s", c.AtLeast, what, by, c.Window, matchOf(r.Match))
	}
	order := "in any order"
	if c.Type == temporalOrdered {
		order = "in this order"
	}
	text := fmt.Sprintf("Within %s, %s:", c.Window, order)
	for i, s := range c.Steps {
		var of []string
		for _, id := range s.Rules {
			of = append(of, fmt.Sprintf("[%s](#%s)", id, id))
		}
		if len(s.Match.Actions) > 0 {
			of = append(of, matchOf(s.Match))
		}
		text += fmt.Sprintf("\n  %d. %s", i+1, strings.Join(of, ", "))
	}
	return text
}

func matchOf(m Match) string {
	text := "`" + strings.Join(m.Actions, "`, `") + "`"
	if m.Verdict != "" {
		text += ", " + m.Verdict
	}
	if len(m.Objects) > 0 {
		text += " of `" + strings.Join(m.Objects, "`, `") + "`"
	}
	if len(m.Marks) > 0 {
		text += ", marked `" + strings.Join(m.Marks, "` or `") + "`"
	}
	if len(m.Unless) > 0 {
		text += ", not `" + strings.Join(m.Unless, "` or `") + "`"
	}
	if len(m.New) > 0 {
		text += ", of which a `" + strings.Join(m.New, "` or `") + "` is new"
	}
	if m.Condition != "" {
		text += ", where `" + strings.Join(strings.Fields(m.Condition), " ") + "`"
	}
	return text
}
