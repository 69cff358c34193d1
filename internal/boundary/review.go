package boundary

import (
	"context"

	"holdfast.dev/holdfast/internal/policy"
)

// Review asks that the command works on a view of the workspace: what it writes
// there goes to Dir.
type Review struct {
	// Dir holds the directories "upper" and "work", empty, and owned by the
	// owner of the workspace. The backend puts what is written to the workspace below
	// upper: as the upper layer of an overlay, or in the copy that is there.
	Dir string

	// Other is a file of the workspace that the command may change and that is not
	// of its user and first group, from the workspace; "" for none. A layer cannot
	// change it.
	Other string

	// Copy fills upper with a copy of the workspace. It is called once, if the plan
	// wants that or no layer can be laid; why says which.
	Copy func(ctx context.Context, why string) error

	// Mode is set by Start: ViewOverlay or ViewCopy. It is right from before
	// Attested is called.
	Mode policy.View
}
