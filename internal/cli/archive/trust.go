package archive

import (
	"context"
	"fmt"

	"holdfast.dev/holdfast/internal/record/audit"
)

// Trust is how far a record can be trusted.
type Trust struct {
	Running  bool     `json:"running,omitempty"`
	Record   string   `json:"record,omitempty"` // verdict of the verification; "" when there was none
	Problems []string `json:"problems,omitempty"`
}

// shownProblems is how many problems of a record trust names.
const shownProblems = 10

// ReadVerified calls each with the events of a session's record, and returns how far
// the record can be trusted by the keys and heads of this user: see audit.ReadVerified,
// whose errors it returns.
func (r Archive) ReadVerified(ctx context.Context, info audit.Info, each func(*audit.Record) error) (Trust, error) {
	report, err := audit.ReadVerified(ctx, info.Path, audit.VerifyOptions{Session: r.ExpectedSession(info), Keys: r.Keys, Heads: r.Heads}, each)
	t := Trust{Record: report.Verdict.String(), Running: report.Open}
	for _, p := range report.Problems[:min(shownProblems, len(report.Problems))] {
		t.Problems = append(t.Problems, p.String())
	}
	if more := len(report.Problems) + report.More - len(t.Problems); more > 0 {
		t.Problems = append(t.Problems, fmt.Sprintf("%d more", more))
	}
	return t, err
}
