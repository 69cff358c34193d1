//go:build linux

package harness

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// rowOf converts a result for reports; again is the command line that plays
// against t.
func rowOf(res probe.Result, t probe.Target, again string) report.Row {
	r := res.Row
	if _, bare := t.(probe.None); bare && res.Verdict == probe.Held {
		res.Reason = bareReason(r)
	}
	return report.Row{
		ID: r.ID, Class: r.Class, Title: r.Title, Promise: string(r.Promise), Kind: string(r.Kind), Core: r.Core, Refs: r.Refs,
		Expected: expected(r, t), Observed: observed(res), Verdict: res.Verdict.String(), Reason: res.Reason,
		Effects: res.Effects, Denials: res.Denials, Missing: res.Missing, Took: report.Seconds(res.Took),
		Rerun: again + " --id " + r.ID, Advice: advice(res, t),
	}
}

// bareReason returns why a row did not escape without any sandbox.
func bareReason(r probe.Row) string {
	switch {
	case r.Kind == probe.Control:
		return "it must work everywhere"
	case r.Bare != "":
		return "it cannot escape without a sandbox: " + r.Bare
	case r.BareUser != "" && os.Geteuid() != 0:
		return "it cannot escape for an ordinary user without a sandbox: " + r.BareUser
	}
	return "it did not escape, and nothing held it: the row proves nothing"
}

// expected returns what must be seen for the row to hold.
func expected(r probe.Row, t probe.Target) string {
	var want string
	switch {
	case r.Kind == probe.Control:
		want = "it works"
	case r.Harmless != "":
		want = "nothing gets through"
	case r.RefusalHolds:
		want = "denied, or not started at all"
	default:
		want = "denied"
	}
	if _, keeps := t.(probe.Recorder); keeps && len(r.Trace.Events)+len(r.Trace.Rules) > 0 {
		want += ", and recorded"
	}
	return want
}

// observed returns what was seen, in a few words.
func observed(res probe.Result) string {
	switch {
	case len(res.Effects) > 0:
		return res.Effects[0]
	case res.Verdict == probe.Held && res.Row.Kind == probe.Control:
		return "it worked"
	case res.Target == "none":
		return res.Reason
	case res.Verdict != probe.Held:
		return res.Reason
	}
	var errnos []string
	for _, d := range res.Denials {
		if i := strings.LastIndex(d, ": "); i >= 0 && !strings.Contains(strings.Join(errnos, " "), d[i+2:]) {
			errnos = append(errnos, d[i+2:])
		}
	}
	if len(errnos) == 0 {
		return "nothing got through"
	}
	return strings.Join(errnos, ", ")
}

// advice returns what to do about a row that fails.
func advice(res probe.Result, t probe.Target) string {
	own := t.Name() == "holdfast"
	switch {
	case res.Verdict == probe.Escaped && own:
		return "what got through is a defect of the boundary: do not run agents here until 'holdfast doctor' and this row agree, and report it with the output of --format json"
	case res.Verdict == probe.Escaped:
		return "the target lets this through as it was called: look at its flags, or put what the row aims at out of its reach"
	case res.Verdict == probe.Unseen:
		return "it was denied, and nobody would know: look at the record with 'holdfast log show', and at what 'holdfast doctor' says of recording"
	case res.Verdict == probe.Inconclusive && res.Missing:
		return "install or enable what is missing, and play the row again; until then nothing is known"
	case res.Verdict == probe.Inconclusive:
		return "nothing is known: play the row again, alone, and look at its reason"
	}
	return ""
}

// policyOf returns the hash of the policy in a world, without its paths; "" for a
// target that cannot show one.
func policyOf(ctx context.Context, t probe.Target, p *Place) string {
	h, ok := t.(targets.Holdfast)
	if !ok {
		return ""
	}
	base, err := os.MkdirTemp(p.Dir, "policy-")
	if err != nil {
		return ""
	}
	defer os.RemoveAll(base)
	w, home := filepath.Join(base, "w"), filepath.Join(base, "h")
	if os.Mkdir(w, 0o755) != nil || os.Mkdir(home, 0o755) != nil {
		return ""
	}
	cmd := exec.CommandContext(ctx, h.Path, "policy", "show", "--workspace", w)
	cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}, w
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return policySum(out, base)
}

// policySum returns the hash of a policy as shown for a workspace below base.
// Column widths, which depend on the length of base, do not count.
func policySum(shown []byte, base string) string {
	h := sha256.New()
	for line := range bytes.Lines(bytes.ReplaceAll(shown, []byte(base), nil)) {
		h.Write(append(bytes.Join(bytes.Fields(line), []byte(" ")), '\n'))
	}
	return hex.EncodeToString(h.Sum(nil))
}
