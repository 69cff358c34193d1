package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"

	"holdfast.dev/holdfast/internal/floor/document"
)

// sarifSchema is the address of OASIS's schema of SARIF 2.1.0.
const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

// The parts of SARIF 2.1.0 that are used.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Automation  sarifAutomation   `json:"automationDetails"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		Properties  map[string]any    `json:"properties,omitempty"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string         `json:"id"`
		Name       string         `json:"name,omitempty"`
		Short      sarifMessage   `json:"shortDescription"`
		Full       sarifMessage   `json:"fullDescription"`
		Help       sarifMessage   `json:"help"`
		HelpURI    string         `json:"helpUri,omitempty"`
		Default    sarifDefault   `json:"defaultConfiguration"`
		Properties map[string]any `json:"properties"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifAutomation struct {
		ID          string       `json:"id"`
		Description sarifMessage `json:"description"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Start         string              `json:"startTimeUtc,omitempty"`
		End           string              `json:"endTimeUtc,omitempty"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
		Properties    map[string]any      `json:"properties,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
		Rule    sarifRef     `json:"associatedRule"`
	}
	sarifRef struct {
		ID    string `json:"id"`
		Index int    `json:"index"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Kind         string             `json:"kind"`
		Level        string             `json:"level"`
		Message      sarifMessage       `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Properties   map[string]any     `json:"properties,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region struct {
			StartLine int `json:"startLine"`
		} `json:"region"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Full string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification,omitempty"`
	}
)

// SARIF writes r as SARIF 2.1.0. Rows are rules. A row that escaped or was unseen
// is an error. One that proved nothing is a notification of the tool, or a
// warning if r is strict and does not except it. A residual is a suppressed note.
// Rows that were held have no result, because viewers of SARIF show every result
// as a finding.
func SARIF(w io.Writer, r Run) error {
	name := cmp.Or(document.Clean(r.Target.Name), "target")
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: cmp.Or(document.Clean(r.Tool), "holdfast"), Version: document.Clean(r.Version), Rules: []sarifRule{}}},
		Automation: sarifAutomation{"prove/" + segment(name) + "/", sarifMessage{"escape matrix of " + r.Target.nameAndVersion()}},
		Results:    []sarifResult{},
		Properties: map[string]any{"target": r.Target.facts(), "host": r.Host.String()},
	}
	invocation := sarifInvocation{Successful: true, Properties: map[string]any{}}
	if !r.Started.IsZero() {
		invocation.Start = r.Started.UTC().Format(time.RFC3339)
		invocation.End = r.Started.Add(time.Duration(r.Took)).UTC().Format(time.RFC3339)
	}
	for name, value := range map[string]string{"rows": document.Clean(r.Selection), "except": strings.Join(document.CleanAll(r.Except), " ")} {
		if value != "" {
			invocation.Properties[name] = value
		}
	}
	index := map[string]int{}
	for _, row := range r.sorted() {
		row.ID = token(row.ID, "row")
		i, known := index[row.ID]
		if !known {
			i = len(run.Tool.Driver.Rules)
			index[row.ID] = i
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, row.rule())
		}
		switch verdict := row.judged(); {
		case verdict == Held:
		case verdict == Inconclusive && !row.Fails(r.Strict):
			text := document.Clean(row.ID) + " proved nothing: " + cmp.Or(document.Clean(row.Reason), "no reason was given")
			invocation.Notifications = append(invocation.Notifications, sarifNotification{"note", sarifMessage{text}, sarifRef{row.ID, i}})
		default:
			run.Results = append(run.Results, row.result(i, name))
		}
	}
	run.Invocations = []sarifInvocation{invocation}
	return writeJSON(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

// facts are the known properties of t.
func (t Target) facts() map[string]any {
	all := map[string]any{}
	for name, value := range map[string]string{"name": t.Name, "version": t.Version, "path": t.Path, "sha256": t.SHA256, "called": t.commandLine(), "policy": t.Policy} {
		if value = document.Clean(value); value != "" {
			all[name] = value
		}
	}
	return all
}

func (r Row) rule() sarifRule {
	rule := sarifRule{
		ID: r.ID, Name: ruleName(r.ID), Short: sarifMessage{cmp.Or(document.Clean(r.Title), r.ID)}, Default: sarifDefault{"error"},
		Properties: map[string]any{"tags": ordered(document.CleanAll([]string{"security", r.Class, r.Promise}))},
	}
	rule.Full = rule.Short
	help := []string{cmp.Or(document.Clean(r.Title), r.ID)}
	for _, p := range Promises {
		if p.ID == r.Promise {
			rule.Full.Text = document.Clean(r.Title) + ". It tries to break this promise: " + p.Text
			help = append(help, p.ID+": "+p.Text)
		}
	}
	for _, ref := range r.Refs {
		link := address(ref)
		if rule.HelpURI == "" {
			rule.HelpURI = link
		}
		help = append(help, strings.TrimSpace(document.Clean(ref)+" "+link))
	}
	rule.Help.Text = strings.Join(append(help, document.CleanAll([]string{r.Advice})...), "\n")
	return rule
}

// ruleName is an ID reduced to letters and digits, such as LNK001.
func ruleName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, id)
}

// result is the finding of r; target is the name of what was tried.
func (r Row) result(rule int, target string) sarifResult {
	verdict := r.judged()
	lines := []string{document.Clean(r.Title) + ": " + verdict}
	if why := document.Clean(r.Reason); why != "" {
		lines = append(lines, why)
	}
	for _, part := range []struct{ label, text string }{{"Expected", r.Expected}, {"Observed", r.Observed}, {"Do", r.Advice}, {"Again", r.Rerun}} {
		if text := document.Clean(part.text); text != "" {
			lines = append(lines, part.label+": "+text)
		}
	}
	sum := sha256.Sum256([]byte(target + "\x00" + r.ID))
	print := hex.EncodeToString(sum[:16])
	out := sarifResult{
		RuleID: r.ID, RuleIndex: rule, Kind: "fail", Level: "error", Message: sarifMessage{strings.Join(lines, "\n")},
		// GitHub code scanning only uses the second name.
		Fingerprints: map[string]string{"holdfastRow/v1": print, "primaryLocationLineHash": print + ":1"},
		Properties:   map[string]any{"verdict": verdict},
	}
	if effects := document.CleanAll(r.Effects); len(effects) > 0 {
		out.Properties["effects"] = effects
	}
	if denials := document.CleanAll(r.Denials); len(denials) > 0 {
		out.Properties["denials"] = denials
	}
	switch verdict {
	case Inconclusive:
		out.Level = "warning"
	case Residual:
		out.Level = "note"
		out.Suppressions = []sarifSuppression{{"external", document.Clean(r.Reason)}}
	}
	// SARIF viewers require a file. A row has none, so it gets a stable name.
	class := className(r.Class)
	location := sarifLocation{Logical: []sarifLogical{{Name: r.ID, Full: class + "/" + r.ID, Kind: "object"}}}
	location.Physical.Artifact.URI = "prove/" + segment(target) + "/" + segment(class) + "/" + segment(r.ID)
	location.Physical.Region.StartLine = 1
	out.Locations = []sarifLocation{location}
	return out
}

// segment is s as one path segment of a URL that is not resolved away.
func segment(s string) string {
	if strings.Trim(s, ".") == "" {
		return "-"
	}
	return url.PathEscape(s)
}

var (
	cveID  = pattern(`^CVE-\d{4}-\d{4,}$`)
	ghsaID = pattern(`^GHSA(-[0-9a-z]{4}){3}$`)
)

// address is the web address of a reference, or "".
func address(ref string) string {
	switch {
	case cveID().MatchString(ref):
		return "https://www.cve.org/CVERecord?id=" + ref
	case ghsaID().MatchString(ref):
		return "https://github.com/advisories/" + ref
	}
	if len(ref) > 2000 || !text.Plain(ref) || strings.ContainsAny(ref, " \"<>\\^`{|}") {
		return ""
	}
	u, err := url.Parse(ref)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return u.String()
}
