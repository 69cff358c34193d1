package credentials

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"math/rand"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

func TestPlaceholdersLookLikeTokensOfTheirKind(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{
		"ghp_":          `^ghp_[A-Za-z0-9]{36}$`,
		"github_pat_":   `^github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}$`,
		"sk-ant-api03-": `^sk-ant-api03-[A-Za-z0-9_-]{93}AA$`,
		"sk-":           `^sk-[A-Za-z0-9]{48}$`,
		"sk-proj-":      `^sk-proj-[A-Za-z0-9]{48}$`,
		"glpat-":        `^glpat-[A-Za-z0-9_-]{22}$`,
		"npm_":          `^npm_[A-Za-z0-9]{36}$`,
		"xoxb-":         `^xoxb-[0-9]{12}-[0-9]{13}-[A-Za-z0-9]{24}$`,
		"AKIA":          `^AKIA[A-Z2-7]{16}$`,
		"hf_":           `^hf_[A-Za-z0-9]{40}$`,
		"":              `^hf_[A-Za-z0-9]{40}$`,
		"acme.v1-":      `^acme\.v1-[A-Za-z0-9]{40}$`,
	} {
		a, b := placeholder(prefix), placeholder(prefix)
		if !regexp.MustCompile(want).MatchString(a) {
			t.Errorf("%q: %s does not match %s", prefix, a, want)
		}
		if a == b {
			t.Errorf("%q: two are the same", prefix)
		}
		if url.QueryEscape(a) != a {
			t.Errorf("%q: %s changes in a URL", prefix, a)
		}
	}
}

func TestPlaceholdersHave128RandomBits(t *testing.T) {
	t.Parallel()
	for prefix, parts := range shapes {
		bits := 0.0
		for _, p := range parts {
			bits += float64(p.length) * math.Log2(float64(len(p.alphabet)))
		}
		if prefix == "AKIA" || prefix == "ASIA" { // their secret keys have the rest
			bits += 40 * math.Log2(float64(len(alphanumeric)))
		}
		if bits < 128 {
			t.Errorf("%s: %.0f bits", prefix, bits)
		}
	}
}

type pattern struct{ text, credential string }

func detectorOf(patterns []pattern) *detector {
	var all []needle
	for _, p := range patterns {
		for _, form := range forms(p.text) {
			all = append(all, needle{form, p.credential})
		}
	}
	return newDetector(all)
}

func TestDetect(t *testing.T) {
	t.Parallel()
	one, two := placeholder("ghp_"), placeholder("sk-ant-api03-")
	d := detectorOf([]pattern{{one, "one"}, {two, "two"}})
	escaped := func(s string) string {
		var b strings.Builder
		for i := range len(s) {
			fmt.Fprintf(&b, "%%%02x", s[i])
		}
		return b.String()
	}
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + one))
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "Bearer something-else", nil},
		{"empty", "", nil},
		{"plain", one, []string{"one"}},
		{"in the middle", "Bearer " + two + " and more", []string{"two"}},
		{"at the end", "token=" + one, []string{"one"}},
		{"both", two + one, []string{"one", "two"}},
		{"twice", one + one, []string{"one"}},
		{"all but the last letter", one[:len(one)-1], nil},
		{"all but the first letter", one[1:], nil},
		{"percent-encoded in part", strings.Replace(one, "_", "%5f", 1), []string{"one"}},
		{"percent-encoded whole", escaped(one), []string{"one"}},
		{"percent-encoded twice", strings.ReplaceAll(escaped(one), "%", "%25"), []string{"one"}},
		{"after an escape that is not whole", "%zz%" + one, []string{"one"}},
		{"in Basic credentials", "Basic " + basic, []string{"one"}},
		{"in base64 at another offset", base64.StdEncoding.EncodeToString([]byte("ab" + one + "cd")), []string{"one"}},
		{"in base64 for URLs", base64.RawURLEncoding.EncodeToString([]byte("a" + two)), []string{"two"}},
		{"in base64 that is percent-encoded", url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("<>?" + one))), []string{"one"}},
	} {
		if got := d.find([]byte(c.text)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := newDetector(nil).find([]byte(one)); got != nil {
		t.Errorf("without texts: %v", got)
	}
}

// TestDetectAgreesWithASearchForEach hides texts in noise and compares with the
// plain search.
func TestDetectAgreesWithASearchForEach(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(1))
	var all []pattern
	for i := range 12 {
		all = append(all, pattern{placeholder([]string{"ghp_", "AKIA", "xoxb-", ""}[i%4]), fmt.Sprint("c", i)})
	}
	d := detectorOf(all)
	for range 2000 {
		data := make([]byte, r.Intn(400))
		for i := range data {
			data[i] = alphanumeric[r.Intn(len(alphanumeric))]
		}
		for range r.Intn(4) {
			at := r.Intn(len(data) + 1)
			text := all[r.Intn(len(all))].text
			if r.Intn(3) == 0 {
				text = text[r.Intn(len(text)):]
			}
			data = slices.Insert(data, at, []byte(text)...)
		}
		var want []string
		for _, p := range all {
			if bytes.Contains(data, []byte(p.text)) {
				want = append(want, p.credential)
			}
		}
		slices.Sort(want)
		if got := d.find(data); !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", data, got, want)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	var all []pattern
	for i := range 10 {
		all = append(all, pattern{placeholder("ghp_"), fmt.Sprint(i)})
	}
	d := detectorOf(all)
	data := bytes.Repeat([]byte("GET /a/b/c accept: text/html; q=0.8\r\n"), 1000)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		d.find(data)
	}
}

// TestPlaceholdersInLowerCase: names of headers and hosts come in no other.
func TestPlaceholdersInLowerCase(t *testing.T) {
	b, err := New(Config{Credentials: []policy.Credential{{Name: "one", Source: policy.CredentialSource{Kind: kindEnv, Value: "ONE"},
		Header: "Authorization", Format: "Bearer {}", Env: []string{"TOKEN"}, Shape: "ghp_", TTL: time.Minute}},
		Env: func(string) (string, bool) { return "a secret of the host", true }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	value := b.Placeholders()[0].Value
	if got := b.Detect([]byte("x-" + strings.ToLower(value))); len(got) != 1 || got[0] != "one" {
		t.Errorf("found %q in lower case", got)
	}
}
