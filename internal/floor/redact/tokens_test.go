package redact

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp/syntax"
	"strings"
	"testing"
)

// TestCurrentTokensAreMasked draws tokens of every format that scanners for secrets
// know by shape, and looks for what is left of them in places where no name identifies
// them.
func TestCurrentTokensAreMasked(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("testdata/tokens.tsv")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(14, 2026))
	r, formats := New(), 0
	for line := range strings.Lines(string(list)) {
		name, pattern, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		formats++
		format, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(name, err)
		}
		for range 50 {
			token := draw(random, format)
			for _, around := range []string{"%s", "send %s now", "x=%s\n", `{"a":"%s"}`} {
				if got := r.String(fmt.Sprintf(around, token)); strings.Contains(got, token[len(token)/2:]) {
					t.Fatalf("%s: %s became %s", name, token, got)
				}
			}
		}
	}
	if formats < 120 {
		t.Errorf("there are %d formats", formats)
	}
}

// draw makes a text that a pattern describes.
func draw(random *rand.Rand, p *syntax.Regexp) string {
	var b strings.Builder
	switch p.Op {
	case syntax.OpLiteral:
		b.WriteString(string(p.Rune))
	case syntax.OpCharClass:
		var all []rune
		for i := 0; i < len(p.Rune); i += 2 {
			for c := p.Rune[i]; c <= p.Rune[i+1]; c++ {
				all = append(all, c)
			}
		}
		b.WriteRune(all[random.IntN(len(all))])
	case syntax.OpRepeat, syntax.OpQuest:
		low, high := p.Min, p.Max
		if p.Op == syntax.OpQuest {
			low, high = 0, 1
		}
		for range low + random.IntN(high-low+1) {
			b.WriteString(draw(random, p.Sub[0]))
		}
	case syntax.OpAlternate:
		b.WriteString(draw(random, p.Sub[random.IntN(len(p.Sub))]))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range p.Sub {
			b.WriteString(draw(random, sub))
		}
	default:
		panic("the pattern has " + p.String())
	}
	return b.String()
}

// TestNamesAreNoTokens has what programs and people write that begins as a token
// does.
func TestNamesAreNoTokens(t *testing.T) {
	t.Parallel()
	r := New()
	for _, text := range []string{
		"re_export_everything_from_the_module_below", "secret_manager_client_for_the_tests_of_this", "live_migration_of_the_virtual_machines_begins_now",
		"test_that_a_name_is_not_masked_when_it_is_one", "path s.replaceAllTheWordsInThisText.here", "patch.object.attribute.of.something.that.is.long.enough.to.be.a.token.but.is.not.one",
		"SKIP_ALL_OF_THE_TESTS", "YCombinatorStartupsOfTheYearTwentyFourAnd", "access-production-of-the-servers", "key-value-store-of-the-application",
		"fc-list and fc-cache", "cioccolatoEPannaMontataConFragoleEMiele", "sk_buff_head_init_class", "-users -usage -us1 10.0.0.1:AAAA",
		"ext_js_and_something_much_longer_than_fifty_letters_in_all", "oy2345", "API-COMPATIBILITY", "4b1d0c", "node_modules/r8_plugin/index.js",
		"/usr/lib/x86_64-linux-gnu/libpthread.so.0", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "commit 7a2b809d960cfe27677f5e09fdadddcd76e15a27",
	} {
		if got := r.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
