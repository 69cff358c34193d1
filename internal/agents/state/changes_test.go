//go:build linux

package state

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Writing a user's settings again would lose their comments, so settings with
// comments are not changed.
func TestApplyLeavesSettingsWithComments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := filepath.Join(dir, "settings.json")
	text := "{\n  // why it is so\n  \"a\": 1\n}\n"
	if err := errors.Join(os.WriteFile(place, []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "new"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	changes := &Changes{Dir: dir}
	file := ChangedFile{Place: place, Change: "changed", New: "new", Keys: []KeyChange{{Key: []string{"a"}, Value: json.Number("2"), Had: true, Was: json.Number("1")}}}
	if err := changes.Apply(file); err == nil || !strings.Contains(err.Error(), "comments") {
		t.Errorf("it was applied: %v", err)
	}
	if now, err := os.ReadFile(place); err != nil || string(now) != text {
		t.Errorf("left is %q, %v", now, err)
	}
	plain := "{\"a\": 1, \"url\": \"https://example.org\"}\n"
	if err := os.WriteFile(place, []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := changes.Apply(file); err != nil {
		t.Errorf("without comments: %v", err)
	}
}

func TestApplyDoesNotTakeBackWhatWasWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(place, []byte("newer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, was := range []string{"older", ""} {
		at, err := openPlace(place, true)
		if err != nil {
			t.Fatal(err)
		}
		defer at.close()
		if err := at.replace([]byte(was), []byte("ours"), 0o600); err == nil {
			t.Errorf("%q: it was written over", was)
		}
	}
	if now, err := os.ReadFile(place); err != nil || string(now) != "newer" {
		t.Errorf("left is %q, %v", now, err)
	}
	at, err := openPlace(place, true)
	if err != nil {
		t.Fatal(err)
	}
	defer at.close()
	if err := at.replace([]byte("newer"), []byte("ours"), 0o600); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(place))
	if err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
