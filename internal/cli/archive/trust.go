package archive

import (
	"context"
	"fmt"

	"holdfast.dev/holdfast/internal/record/audit"
)

// Trust is how far a record is to be trusted.
type Trust struct {
	Running  bool     `json:"running,omitempty"`
	Record   string   `json:"record,omitempty"` // verdict of the verification; "" when there was none
	Problems []string `json:"problems,omitempty"`
}

// shownProblems is how many problems of a record trust names.
const shownProblems = 10

// verify checks the record of a session with the keys and heads of this user.
func (r Archive) verify(ctx context.Context, info audit.Info) (Trust, error) {
	report, err := audit.Verify(ctx, info.Path, audit.VerifyOptions{Session: r.Placed(info), Keys: r.Keys, Heads: r.Heads})
	if err != nil {
		return Trust{}, err
	}
	t := Trust{Record: report.Verdict.String(), Running: report.Open}
	for _, p := range report.Problems[:min(shownProblems, len(report.Problems))] {
		t.Problems = append(t.Problems, p.String())
	}
	if more := len(report.Problems) + report.More - len(t.Problems); more > 0 {
		t.Problems = append(t.Problems, fmt.Sprintf("%d more", more))
	}
	return t, nil
}

// Verifying begins to verify a record, and returns what waits for the answer.
func (r Archive) Verifying(ctx context.Context, info audit.Info) func() (Trust, error) {
	type answer struct {
		Trust
		err error
	}
	verified := make(chan answer, 1)
	go func() {
		t, err := r.verify(ctx, info)
		verified <- answer{t, err}
	}()
	return func() (Trust, error) {
		a := <-verified
		return a.Trust, a.err
	}
}
