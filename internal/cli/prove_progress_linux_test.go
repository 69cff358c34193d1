package cli_test

import "testing"

// TestProveProgress plays two rows on a terminal: a line says how far they are,
// and is gone when the report comes.
func TestProveProgress(t *testing.T) {
	t.Parallel()
	s := onScreen(t, "holdfast", "prove", "--id", "LNK-003", "--id", "LNK-001b", "--jobs", "1")
	s.wait(`\r\x1b\[Kholdfast: 1 of 2 rows, 0 escaped, 0 unseen, 0 inconclusive; LNK-00(1b|3)`)
	s.wait(`\r\x1b\[Kholdfast: 2 of 2 rows, 0 escaped, 0 unseen, 0 inconclusive; LNK-00(1b|3)`)
	s.wait(`^\r\x1b\[K(\x1b\[[0-9;]*m)*escape matrix of holdfast`)
	s.wait(`2 rows in [^:]*:`)
	if status := s.ended(); status != 0 {
		t.Errorf("status %d, on the screen:\n%s", status, s.shown())
	}
}
