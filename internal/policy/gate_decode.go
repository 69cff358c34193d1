package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/floor/expr"
	"holdfast.dev/holdfast/internal/floor/text"
)

const (
	aGate      = "a rule of consent" // in messages
	maxTimeAsk = 24 * time.Hour      // that a human may be given
)

// gate decodes one element of ask or deny.
func (d *decoder) gate(key string, n *yaml.Node) {
	var r GateRule
	before := len(d.errs)
	if n.Kind == yaml.ScalarNode {
		d.text(aGate, "set", n, func(text string) (err error) {
			r.Set, err = setText(text)
			return err
		})
	} else {
		d.mapping(aGate, n, []field{
			d.textField(aGate, "set", &r.Set, setText),
			d.textField(aGate, "when", &r.When, func(text string) (_ string, err error) {
				r.condition, err = expr.CompileAttempt(text)
				return text, err
			}),
			d.textField(aGate, "reason", &r.Reason, plainReason),
			{"attended", func(n *yaml.Node) { d.truth(aGate, "attended", n, &r.Attended) }},
		})
	}
	if len(d.errs) > before {
		return
	}
	if err := r.whole(key); err != nil {
		d.fail(n, "for example git-push, or {when: 'action == \"exec\" && program == \"terraform\"'}", "%s: %v", key, err)
		return
	}
	d.add(n, Entry{Key: key, Value: r.String(), Gate: &r})
}

// whole says what contradicts itself in a rule.
func (r GateRule) whole(key string) error {
	switch {
	case r.Set == "" && r.When == "":
		return errors.New("the rule says of nothing that it is meant: neither set nor when")
	case r.Attended && key != "ask":
		return errors.New("attended stands under ask only: what is denied is denied whoever is there")
	}
	return nil
}

// gateText reads a rule from a flag: the name of a set, or a condition.
func gateText(text string) (r GateRule, err error) {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-") == "" {
		r.Set, err = setText(text)
		return r, err
	}
	r.When = text
	r.condition, err = expr.CompileAttempt(text)
	return r, err
}

func setText(text string) (string, error) {
	if !slices.Contains(gateSetNames, text) {
		return "", unknownSet(text)
	}
	return text, nil
}

// plainReason is a text that is shown to a human who decides, and so must look
// like what it is.
func plainReason(reason string) (string, error) {
	if _, err := toolText(reason); err != nil {
		return "", err
	}
	if !text.Plain(reason) {
		return "", errors.New("it has a character that cannot be seen")
	}
	return reason, nil
}

// String is a rule in one line.
func (r GateRule) String() string {
	var parts []string
	for _, one := range []string{r.Set, r.Name} {
		if one != "" {
			parts = append(parts, one)
		}
	}
	text := strings.Join(parts, "/")
	if r.When != "" {
		text = strings.TrimSpace(text + " when " + strings.Join(strings.Fields(r.When), " "))
	}
	if r.Attended {
		text += ", while attended"
	}
	return text
}

// gateShape is the schema of a rule of consent.
func gateShape(key string) map[string]any {
	properties := map[string]any{
		"set":    map[string]any{"enum": gateSetNames},
		"when":   map[string]any{"type": "string", "minLength": 1},
		"reason": map[string]any{"type": "string", "minLength": 1, "maxLength": maxToolText},
	}
	if key == "ask" {
		properties["attended"] = map[string]any{"type": "boolean"}
	}
	return map[string]any{"oneOf": []any{
		map[string]any{"enum": gateSetNames},
		map[string]any{
			"type": "object", "additionalProperties": false, "properties": properties,
			"anyOf": []any{map[string]any{"required": []string{"set"}}, map[string]any{"required": []string{"when"}}},
		},
	}}
}

// patienceText reads approvals.timeout. 0 is its least value, and not none.
func patienceText(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxTimeAsk || d != 0 && d < time.Second {
		return 0, fmt.Errorf("%q is not a duration from 1s to %s such as 15m, or 0s for nobody is asked", printable(text), shortSpan(maxTimeAsk))
	}
	return int64(d), nil
}

// gatesDoc describes a rule of consent in full.
const gatesDoc = "An entry is the name of a shipped set, or a mapping:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `set` | the name of a shipped set ([rule-sets.md](rule-sets.md)): `install`, `git-remotes`, `git-push`, `publish`, `infrastructure`, `pipe-to-shell`, `outside-writes` or `new-hosts` |\n" +
	"| `when` | a condition (CEL) on what is about to happen, such as `action == \"exec\" && program == \"terraform\" && verb == \"apply\"`; with `set` both must hold. The names that it can use are listed in [rule-sets.md](rule-sets.md). A condition that cannot be evaluated counts as true |\n" +
	"| `reason` | what the human, or whoever is refused, is told |\n"

const aboutDoc = "A condition that does not say which `action` is meant is about those that have what it names: `host` is about connections, `argv` about what is executed."
