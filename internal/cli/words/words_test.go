package words

import "testing"

func TestCut(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"12345", "12345"}, {"123456", "12345…"}, {"1234é", "1234…"}, {"a b\x1b[0m", `$'a b\x1b['…`},
	} {
		if got := Cut(tt.in, 5); got != tt.want {
			t.Errorf("%q is cut to %s, want %s", tt.in, got, tt.want)
		}
	}
}
