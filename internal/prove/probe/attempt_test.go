//go:build linux

package probe

import "testing"

// TestKeptPrivateIsContained: a write that a private directory took did not reach
// the real place. One without that detail, or a denial by another layer, does not
// show that.
func TestKeptPrivateIsContained(t *testing.T) {
	private := Attempt{Action: "file.write", Object: "/h/x", Verdict: "allowed", Detail: map[string]string{"kept": "private"}}
	through := Attempt{Action: "file.write", Object: "/h/x", Verdict: "allowed"}
	for _, tt := range []struct {
		want Attempt
		got  Attempt
		is   bool
	}{
		{Attempt{Action: "file.write", Object: "/h/x", Verdict: "denied"}, private, true},
		{Attempt{Action: "file.write", Object: "/h/x", Verdict: "denied", Layer: "view"}, private, true},
		{Attempt{Action: "file.write", Object: "/h/x", Verdict: "denied", Layer: "protected"}, private, false},
		{Attempt{Action: "file.mkdir", Object: "/h/x", Verdict: "denied"}, private, false},
		{Attempt{Action: "file.write", Object: "/h/x", Verdict: "denied"}, through, false},
		{Attempt{Action: "file.write", Object: "/h/x"}, private, true},
	} {
		if got := tt.want.matches(tt.got); got != tt.is {
			t.Errorf("%s of %s kept %q: %v", tt.want, tt.got, tt.got.Detail["kept"], got)
		}
	}
}
