package audit

import "testing"

func TestNumbers(t *testing.T) {
	if got := Numbers([]uint64{9, 4, 6, 5, 9, 1}); got != "1,4-6,9" {
		t.Errorf("got %q", got)
	}
	var many []uint64
	for n := range uint64(10_000) {
		many = append(many, 2*n+1)
	}
	set := Numbers(many)
	if len(set) > 2000 {
		t.Errorf("it has %d bytes", len(set))
	}
	for _, n := range many {
		if !HasNumber(set, n) {
			t.Fatalf("%d is not in it", n)
		}
	}
	if HasNumber(set, 2) || HasNumber(set, 20_000) || !HasNumber("no set", 5) {
		t.Error("it has what it has not, or the other way round")
	}
}
