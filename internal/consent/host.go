package consent

import (
	"math"
	"strings"
	"unicode/utf8"
)

// Host is the name of a host as it is asked for, with letters beyond ASCII as
// punycode writes them, made visible.
func Host(name string) string {
	labels := strings.Split(name, ".")
	for i, l := range labels {
		if !utf8.ValidString(l) || ascii(l) || len(l) > 255 {
			continue
		}
		labels[i] = "xn--" + puny([]rune(strings.ToLower(l)))
	}
	return visible(strings.Join(labels, "."), 300)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// The numbers of RFC 3492, section 5.
const (
	punyBase, punyMin, punyMax       = 36, 1, 26
	punySkew, punyDamp, punyBias, p0 = 38, 700, 72, 128
)

const punyDigits = "abcdefghijklmnopqrstuvwxyz0123456789"

// puny is a label as RFC 3492, section 6.3, encodes it.
func puny(label []rune) string {
	var out []byte
	for _, r := range label {
		if r < p0 {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(p0), 0, punyBias
	for done := basic; done < len(label); n++ {
		next := rune(math.MaxInt32)
		for _, r := range label {
			if r >= n && r < next {
				next = r
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r == n {
				out = punyNumber(out, delta, bias)
				bias = punyAdapt(delta, done+1, done == basic)
				delta = 0
				done++
			}
		}
		delta++
	}
	return string(out)
}

// punyNumber writes a number of variable length.
func punyNumber(out []byte, q, bias int) []byte {
	for k := punyBase; ; k += punyBase {
		t := min(max(k-bias, punyMin), punyMax)
		if q < t {
			return append(out, punyDigits[q])
		}
		out = append(out, punyDigits[t+(q-t)%(punyBase-t)])
		q = (q - t) / (punyBase - t)
	}
}

func punyAdapt(delta, n int, first bool) int {
	if first {
		delta /= punyDamp
	} else {
		delta /= 2
	}
	delta += delta / n
	k := 0
	for ; delta > (punyBase-punyMin)*punyMax/2; k += punyBase {
		delta /= punyBase - punyMin
	}
	return k + (punyBase-punyMin+1)*delta/(delta+punySkew)
}
