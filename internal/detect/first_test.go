package detect

import "testing"

// BenchmarkFirst measures a new engine up to its first candidate, whose
// condition is compiled.
func BenchmarkFirst(b *testing.B) {
	for b.Loop() {
		e, err := New(Config{Place: here})
		if err != nil {
			b.Fatal(err)
		}
		e.Observe(denied("/home/bob/.ssh/id_rsa"))
	}
}
