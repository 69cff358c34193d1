package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/consent/rules"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
)

// consentKeys are those of the rules of consent.
var consentKeys = []key{
	{name: "ask", kind: &consents, project: adds, example: "[git-push, {set: new-hosts, attended: true}, {when: 'action == \"exec\" && program == \"terraform\" && verb == \"apply\"', reason: this changes what runs}]",
		doc: "What a human must decide before it happens: the action waits for the answer, and is denied if nobody answers in time. If several rules cover an action, one under `deny` decides; then one that always asks. Rules about commands are for consent and the boundary is for security. The flag is `--ask`. " + consentDoc +
			"| `attended` | `true`: asks only while `holdfast approve` is open; otherwise the boundary decides as it would without the rule |\n\n" + aboutDoc},
	{name: "deny", kind: &consents, project: adds, example: "[publish, {when: 'action == \"connect\" && port == 25'}]",
		doc: "What is denied without asking, although the boundary would let it happen. The flag is `--deny`. " + consentDoc + "\n" + aboutDoc},
}

var consents = kind{
	takes:   "a list of names of sets, or mappings",
	many:    true,
	element: (*decoder).consentRule,
	text: func(k key, text string) (Entry, string, error) {
		rule, err := consentText(text)
		return Entry{Key: k.name, Value: rule.String(), Consent: &rule}, "", err
	},
	schema: func(k key) map[string]any { return list(consentShape(k.name)) },
}

// consentDoc describes a rule of consent in full.
const consentDoc = "An entry is the name of a shipped set, or a mapping:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `set` | the name of a shipped set (`holdfast reference rule-sets`): `install`, `git-remotes`, `git-push`, `publish`, `infrastructure`, `pipe-to-shell`, `outside-writes` or `new-hosts` |\n" +
	"| `when` | a condition (CEL) on what is about to happen, such as `action == \"exec\" && program == \"terraform\" && verb == \"apply\"`; with `set` both must hold. The names that it can use are listed in `holdfast reference rule-sets`. A condition that cannot be evaluated counts as true |\n" +
	"| `reason` | text shown to the human, or to the program that is refused |\n"

const aboutDoc = "A condition that names no `action` covers the actions that have the fields it uses: `host` covers connections, `argv` executions."

const aConsentRule = "a rule of consent" // in messages

// consentRule decodes one element of ask or deny.
func (d *decoder) consentRule(key string, n *yaml.Node) bool {
	var r rules.Rule
	before := len(d.errs)
	if n.Kind == yaml.ScalarNode {
		d.text(aConsentRule, "set", n, func(text string) error {
			r.Set = text
			return oneOf("rule set", text, rules.SetNames)
		})
	} else {
		d.mapping(aConsentRule, n, []field{
			d.textField(aConsentRule, "set", &r.Set, choice("rule set", rules.SetNames...)),
			d.textField(aConsentRule, "when", &r.When, func(text string) (string, error) {
				r.When = text
				return text, r.Compile()
			}),
			d.textField(aConsentRule, "reason", &r.Reason, plainReason),
			{"attended", func(n *yaml.Node) { d.truth(aConsentRule, "attended", n, &r.Attended) }},
		})
	}
	if len(d.errs) > before {
		return true
	}
	if err := wholeRule(r, key); err != nil {
		d.fail(n, "for example git-push, or {when: 'action == \"exec\" && program == \"terraform\"'}", "%s: %v", key, err)
		return true
	}
	d.add(n, Entry{Key: key, Value: r.String(), Consent: &r})
	return true
}

// wholeRule returns contradictions in a rule as an error.
func wholeRule(r rules.Rule, key string) error {
	switch {
	case r.Set == "" && r.When == "":
		return errors.New("the rule has neither set nor when")
	case r.Attended && key != "ask":
		return errors.New("attended applies to ask only: deny does not depend on who is there")
	}
	return nil
}

// consentText reads a rule from a flag: the name of a set, or a condition.
func consentText(text string) (r rules.Rule, err error) {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyz-") == "" {
		r.Set = text
		return r, oneOf("rule set", text, rules.SetNames)
	}
	r.When = text
	return r, r.Compile()
}

// plainReason is a text that is shown to a human who decides, and so must not look like
// anything else.
func plainReason(reason string) (string, error) {
	if _, err := toolText(reason); err != nil {
		return "", err
	}
	if !text.Plain(reason) {
		return "", errors.New("it has an invisible character")
	}
	return reason, nil
}

// consentShape is the schema of a rule of consent.
func consentShape(key string) map[string]any {
	properties := map[string]any{
		"set":    map[string]any{"enum": rules.SetNames},
		"when":   map[string]any{"type": "string", "minLength": 1},
		"reason": map[string]any{"type": "string", "minLength": 1, "maxLength": maxToolText},
	}
	if key == "ask" {
		properties["attended"] = map[string]any{"type": "boolean"}
	}
	return map[string]any{"oneOf": []any{
		map[string]any{"enum": rules.SetNames},
		map[string]any{
			"type": "object", "additionalProperties": false, "properties": properties,
			"anyOf": []any{map[string]any{"required": []string{"set"}}, map[string]any{"required": []string{"when"}}},
		},
	}}
}

// consent takes the rules of consent over into the plan.
func (p *Plan) consent(e Effective) {
	p.Ask, p.Deny = consentRulesOf(e, "ask"), consentRulesOf(e, "deny")
}

// consentRulesOf are the rules under ask or under deny.
func consentRulesOf(e Effective, key string) (out []rules.Rule) {
	for _, one := range e.entriesFor(key) {
		r := *one.Consent
		r.Origin = one.Origin.String()
		out = append(out, r)
	}
	return out
}

func consentRows(p Plan) (rows []Row) {
	for _, one := range p.Ask {
		rows = append(rows, Row{"ask", one.String(), one.Origin})
	}
	for _, one := range p.Deny {
		rows = append(rows, Row{"deny", one.String(), one.Origin})
	}
	return rows
}

// Judgement is what the rules of consent and the list of programs say of an attempt.
type Judgement struct {
	rules.Judgement

	// Unlisted is the file of an execution that Plan.Programs does not have,
	// whether that denies it or not; "" for none.
	Unlisted string
}

// Consent judges attempts by the rules of consent of a plan and its list of
// programs. It can be used by several goroutines at once.
type Consent struct {
	*rules.Matcher
	programs Programs
	fixed    func(path string) bool
}

// Consent makes the plan's rules of consent ready.
func (p Plan) Consent() (*Consent, error) {
	fixed := explainer{plan: p}.fixed
	m, err := rules.New(p.Ask, p.Deny, rules.Host{Find: p.findProgram, Fixed: fixed, Outside: p.outsideWorkspace})
	if err != nil {
		return nil, err
	}
	return &Consent{m, p.Programs, fixed}, nil
}

// outsideWorkspace reports whether a path is not in the workspace.
func (p Plan) outsideWorkspace(path string) bool {
	return p.Workspace == "" || !within(path, p.Workspace)
}

// fixed reports whether nothing inside can put a file at a path.
func (x explainer) fixed(path string) bool {
	r := x.rule(path)
	return r.Access == Read || r.Path == "" && rules.SystemFile(path)
}

// maxProgram is how large a file may be that is hashed to be recognised
// elsewhere, in bytes.
const maxProgram = 512 << 20

// findProgram finds a program as a command inside would, by PATH; an absolute name
// is that of the file.
func (p Plan) findProgram(name string) (path, sum string) {
	path = name
	if !filepath.IsAbs(name) {
		path = explainer{plan: p}.search(name)
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil || path == "" {
		return "", ""
	}
	f, err := os.Open(path)
	if err != nil {
		return path, ""
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > maxProgram {
		return path, ""
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return path, ""
	}
	return path, hex.EncodeToString(h.Sum(nil))
}

// Wants reports whether any rule, or the list of programs, can be about a kind of
// attempts. Where none can, callers need not ask.
func (c *Consent) Wants(k event.Kind) bool {
	return c.Matcher.Wants(k) || k == event.KindExec && c.programs.Else != ""
}

// Judge applies the rules to an attempt. What the list of programs refuses is not asked
// about.
func (c *Consent) Judge(a event.Attempt) Judgement {
	j := Judgement{Judgement: c.Matcher.Judge(a), Unlisted: c.unlisted(a)}
	if j.Unlisted == "" || c.programs.Else != programsRefuse || j.Verdict == event.Denied {
		return j
	}
	j.Verdict, j.Rule = event.Denied, rules.Rule{Origin: c.programs.Origin.String()}
	j.Reason = j.Unlisted + " is not among the programs that may be started (programs.allow)"
	return j
}
