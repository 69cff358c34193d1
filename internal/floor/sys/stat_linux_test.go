package sys

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestStatFields(t *testing.T) {
	own, err := StatFields("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	if own[StatState] != "R" && own[StatState] != "S" || own[StatParent] != strconv.Itoa(os.Getppid()) || own[StatStarted] == "0" || own[StatResident] == "0" {
		t.Errorf("got %q", own)
	}
	rest := " S 7 8 9" + strings.Repeat(" 0", 15) + " 1234 0 56 0\n"
	for _, tt := range []struct{ name, text string }{
		{"a plain name", "5 (sh)" + rest},
		{"a name with brackets and spaces", "5 (a) R 1 (b)" + rest},
		{"too few fields", "5 (sh) S 7 8 9\n"},
		{"nothing", ""},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := StatFields(dir)
		if whole := strings.HasSuffix(tt.text, rest); whole != (err == nil) || !whole && !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if err == nil && (f[StatParent] != "7" || f[StatGroup] != "8" || f[StatSession] != "9" || f[StatStarted] != "1234" || f[StatResident] != "56") {
			t.Errorf("%s: %q", tt.name, f)
		}
	}
	if _, err := StatFields(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of one that is not there: %v", err)
	}
}

func TestStatusField(t *testing.T) {
	status := []byte("Name:\tNSpid: 9\nTgid:\t7\nNSpid:\t7\t2\nVmRSS:\t    12 kB\nGroups:\t \nLast:\t1\n")
	for name, want := range map[string][]string{
		"NSpid": {"7", "2"}, "VmRSS": {"12", "kB"}, "Groups": {}, "Last": {"1"}, "VmSwap": {}, "pid": {},
	} {
		if got := StatusField(status, name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := StatusField(nil, "NSpid"); len(got) != 0 {
		t.Errorf("of nothing %q", got)
	}
}
