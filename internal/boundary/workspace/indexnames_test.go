//go:build linux

package workspace

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// namesListed are the listed names of an index, each with its tier.
func namesListed(list []IndexName) (out []string) {
	for _, n := range list {
		out = append(out, string(n.Rule.Tier)+" "+n.Path)
	}
	return out
}

// Names of the deny tier are listed if git would write something else than is
// there, names of secrets if these are there; neither if the index had them before.
func TestIndexNames(t *testing.T) {
	w := tempRoot(t)
	for _, top := range []string{"", "sub/"} {
		write(t, w, top+".env", "A=1\n")
		write(t, w, top+"d/.env", "A=1\n")
		write(t, w, top+"CLAUDE.md", "")
		write(t, w, top+"key.pem", "PRIVATE KEY")
		write(t, w, top+"cert.pem", "CERTIFICATE")
	}
	mkdir(t, w+"/e/.env")
	rules, tree := DefaultRules(), openDir(t, w)
	none := func(string) []byte { return nil }
	for _, tt := range []struct {
		name string
		top  string
		now  []string
		was  []string
		want []string
	}{
		{"ordinary names", "", []string{"README", "src/a.go"}, nil, nil},
		{"a secret that is there", "", []string{".env", "d/.env"}, nil, []string{"hide .env", "hide d/.env"}},
		{"one that was tracked", "", []string{".env", "d/.env"}, []string{".env"}, []string{"hide d/.env"}},
		{"one that is not there, and a directory", "", []string{"none/.env", "e/.env", "f/.env"}, nil, nil},
		{"a key, and what is none", "", []string{"cert.pem", "key.pem"}, nil, []string{"hide key.pem"}},
		{"an example of one", "", []string{".env.example"}, nil, nil},
		{"what git would write", "", []string{".envrc", "CLAUDE.md"}, nil, []string{"deny .envrc", "deny CLAUDE.md"}},
		{"what it would have written before", "", []string{".envrc", "CLAUDE.md"}, []string{"CLAUDE.md"}, []string{"deny .envrc"}},
		{"a directory once", "", []string{".vscode/a", ".vscode/b"}, nil, []string{"deny .vscode"}},
		{"in a directory of the tree", "sub", []string{".env", ".envrc"}, nil, []string{"hide sub/.env", "deny sub/.envrc"}},
		{"where no tree is", "gone", []string{".env", ".envrc"}, nil, []string{"deny gone/.envrc"}},
	} {
		var was [][]byte
		if tt.was != nil {
			was = [][]byte{indexOf(20, "", tt.was...)}
		}
		now := indexOf(20, "", tt.now...)
		for at := 12; at < len(now)-20; { // modes of files, with the object of another content
			now[at+25], now[at+26], now[at+27] = 0, 0x81, 0xa4
			n := int(now[at+61])
			at += (62 + n + 8) &^ 7
		}
		for _, b := range was {
			for at := 12; at < len(b)-20; {
				b[at+25], b[at+26], b[at+27] = 0, 0x81, 0xa4
				at += (62 + int(b[at+61]) + 8) &^ 7
			}
		}
		if got := namesListed(rules.IndexNames(tree, tt.top, now, was, none, nil)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}

	same := indexOf(20, "", "CLAUDE.md")
	copy(same[12+24:], []byte{0, 0, 0x81, 0xa4})
	copy(same[12+40:], blobID(nil, 20))
	if got := rules.IndexNames(tree, "", same, nil, none, nil); got != nil {
		t.Errorf("what is there already: %+v", got)
	}
	if got := namesListed(rules.IndexNames(tree, "gone", same, nil, none, nil)); !slices.Equal(got, []string{"deny gone/CLAUDE.md"}) {
		t.Errorf("where no tree is: %q", got)
	}
	own, err := RulesWith(Changes{Hide: []string{"mine"}, Show: []string{".env"}})
	must(t, err)
	write(t, w, "mine", "")
	if got := own.IndexNames(tree, "", indexOf(20, "", ".env", "d/.env", "mine"), nil, none, nil); got != nil {
		t.Errorf("what the user shows, and what he hides in any case: %+v", got)
	}
	var empty Rules
	if got := empty.IndexNames(tree, "", same, nil, none, nil); got != nil {
		t.Errorf("without rules: %+v", got)
	}

	var many []string
	for i := range maxIndexNames + 5 {
		many = append(many, fmt.Sprintf("m/%03d/.envrc", i))
	}
	if got := rules.IndexNames(tree, "", indexOf(20, "", many...), nil, none, nil); len(got) != maxIndexNames || got[0].Path != path.Join("m", "000", ".envrc") {
		t.Errorf("%d of %d names", len(got), len(many))
	}
	if got := rules.hidingRule("", []byte(strings.Repeat("d/", 3)+".env")); got == nil || got.Tier != Hide {
		t.Errorf("a secret far below: %+v", got)
	}
}
