package approvals

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
)

// began is when the boards of these tests begin.
var began = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func request(id string, argv ...string) consent.Request {
	return consent.Request{
		ID: id, Nonce: "nonce of " + id, Session: "20261122T120000-abc", Digest: "digest of " + id, Asked: began, Expires: began.Add(time.Minute), Count: 1,
		Attempt: event.Attempt{Kind: event.KindExec, Path: "/usr/bin/" + argv[0], Process: event.Process{
			Executable: "/usr/bin/" + argv[0], SHA256: strings.Repeat("a", 64), Argv: argv, Cwd: "/ws"}},
	}
}

func waits(requests ...consent.Request) []consent.Waiting {
	return []consent.Waiting{{Session: "20261122T120000-abc", Requests: requests}}
}

// newBoard is a board on a screen, on which the requests were just drawn.
func newBoard(rows, cols int, requests ...consent.Request) *screenState {
	b := &screenState{}
	b.show(waits(requests...), began)
	b.draw(rows, cols, began)
	b.quiet = began
	return b
}

// at presses keys, the first after a time since the board was drawn and then one
// a millisecond. \r is Enter, \x1b Escape.
func (b *screenState) at(after time.Duration, keys string) (last action) {
	for i, r := range keys {
		k := screen.Key{Code: screen.KeyRune, Rune: r, At: began.Add(after + time.Duration(i)*time.Millisecond)}
		switch r {
		case '\r':
			k.Code = screen.KeyEnter
		case '\x1b':
			k.Code = screen.KeyEscape
		}
		last = b.press(k)
	}
	return last
}

func TestBoardAnswers(t *testing.T) {
	for keys, want := range map[string]consent.Answer{
		"a\r":         {Allow: true, Scope: consent.Once},
		"afine\r":     {Allow: true, Scope: consent.Once, Reason: "fine"},
		"s\r":         {Allow: true, Scope: consent.Session},
		"m10\rq\r":    {Allow: true, Scope: consent.For, For: 10 * time.Minute, Reason: "q"},
		"d\r":         {},
		"dno, ever\r": {Reason: "no, ever"},
	} {
		b := newBoard(24, 80, request("k7m2", "git", "push"))
		got := b.at(time.Second, keys).answer
		want.Session, want.Request, want.Nonce, want.Digest = "20261122T120000-abc", "k7m2", "nonce of k7m2", "digest of k7m2"
		if got == nil || *got != want {
			t.Errorf("%q: got %+v, want %+v (%s)", keys, got, want, b.message)
		}
	}
}

func TestBoardAnswersNothing(t *testing.T) {
	for _, keys := range []string{
		"", "\r", "\r\r\r", "y\r", "yes\r", "a", "a\x1b\r", "m\r", "m0\r\r", "mten\r\r", "m1441\r\r", "m99999999999999999999\r\r", "S\r", "x\r", "\x1b\r",
	} {
		b := newBoard(24, 80, request("k7m2", "git", "push"))
		if got := b.at(time.Second, keys); got.answer != nil {
			t.Errorf("%q: answered %+v", keys, *got.answer)
		}
	}
}

// Keys typed before a request appeared, and right after, are meant for something else,
// also if typing continues for long.
func TestBoardTakesNoKeysTypedEarly(t *testing.T) {
	b := newBoard(24, 80, request("k7m2", "git", "push"))
	if got := b.at(-time.Second, "a\r"); got.answer != nil {
		t.Error("a key of before answered")
	}
	if got := b.at(quietBefore-100*time.Millisecond, "a\r"); got.answer != nil {
		t.Error("a key right after answered")
	}
	for i := range 20 { // the user keeps typing
		if got := b.at(time.Second+time.Duration(i)*500*time.Millisecond, "a\r"); got.answer != nil {
			t.Fatal("typing on answered")
		}
	}
	if got := b.at(time.Minute, "a\r"); got.answer == nil {
		t.Errorf("a key after a pause answered nothing: %s", b.message)
	}
}

func TestBoardTakesNoPaste(t *testing.T) {
	b := newBoard(24, 80, request("k7m2", "git", "push"))
	for _, r := range "a\r" {
		k := screen.Key{Code: screen.KeyRune, Rune: r, At: began.Add(time.Minute), Paste: true}
		if r == '\r' {
			k.Code = screen.KeyEnter
		}
		if got := b.press(k); got.answer != nil {
			t.Error("a paste answered")
		}
	}
	b.at(time.Minute, "d")
	if got := b.press(screen.Key{Code: screen.KeyEnter, At: began.Add(time.Minute), Paste: true}); got.answer != nil {
		t.Error("the end of a pasted line answered")
	}
}

// A request that takes the place of another has its own time without keys.
func TestBoardSelectionMoves(t *testing.T) {
	first, second := request("aaaa", "git", "push"), request("bbbb", "rm", "-rf", "/")
	b := newBoard(24, 80, first, second)
	b.show(waits(second), began.Add(time.Minute))
	b.draw(24, 80, began.Add(time.Minute))
	if got := b.at(time.Minute+100*time.Millisecond, "a\r"); got.answer != nil {
		t.Errorf("answered %s, which was not what was selected", got.answer.Request)
	}
	// One that comes does not take the place of what is selected.
	b = newBoard(24, 80, second)
	b.show(waits(first, second), began.Add(time.Minute))
	b.draw(24, 80, began.Add(time.Minute))
	if got := b.at(time.Minute+time.Millisecond, "d\r"); got.answer == nil || got.answer.Request != "bbbb" {
		t.Errorf("got %+v", got.answer)
	}
	// A request that goes while its reason is typed is not answered.
	b = newBoard(24, 80, first, second)
	b.at(time.Second, "afor ")
	b.show(waits(second), began.Add(time.Minute))
	if got := b.at(time.Minute+time.Millisecond, "it\r"); got.answer != nil || b.prompt != nil {
		t.Errorf("got %+v, prompt %v", got.answer, b.prompt)
	}
}

// What would happen has to have been shown to its end before it is allowed.
func TestBoardWantsAllToBeSeen(t *testing.T) {
	argv := []string{"git"}
	for i := range 200 {
		argv = append(argv, fmt.Sprintf("argument-%d", i))
	}
	b := newBoard(24, 80, request("k7m2", argv...))
	if got := b.at(time.Second, "a"); got.answer != nil || !strings.Contains(b.message, "not shown") {
		t.Fatalf("got %+v, %q", got.answer, b.message)
	}
	b.press(screen.Key{Code: screen.KeyEnd, At: began.Add(2 * time.Second)}) // past the middle, which was not shown
	b.draw(24, 80, began)
	if got := b.at(3*time.Second, "a\r"); got.answer != nil {
		t.Fatal("the middle was not shown")
	}
	b.press(screen.Key{Code: screen.KeyHome})
	b.draw(24, 80, began)
	shown := ""
	for range 100 {
		b.press(screen.Key{Code: screen.KeyPageDown})
		for _, row := range b.draw(24, 80, began) {
			shown += row.Text + "\n"
		}
	}
	for _, arg := range argv[20:] { // those before were on the first screens
		if !strings.Contains(shown, arg+"\n") {
			t.Errorf("%s was on no screen", arg)
		}
	}
	if got := b.at(4*time.Second, "a\r"); got.answer == nil {
		t.Fatalf("all was shown, and: %s", b.message)
	}
	b = newBoard(24, 80, request("k7m2", argv...))
	if got := b.at(time.Second, "d\r"); got.answer == nil {
		t.Error("to deny, nothing has to be seen")
	}
	b = newBoard(smallestRows-1, 80, request("k7m2", "git", "push"))
	if got := b.at(time.Second, "a\r"); got.answer != nil {
		t.Error("allowed on a screen that shows nothing")
	}
}

// Whatever a request says, a row is one row, no wider than the screen, and
// without a control character.
func TestBoardDraws(t *testing.T) {
	hostile := request("k7m2", "git", "\x1b[2J\x1b]0;title\a", "line\nbreak\r", "\u202egnp.exe", strings.Repeat("漢字", 300), "a\u200bb", "\xff\xfe", strings.Repeat("x", 5000))
	hostile.Reason = "\x1b[31m"
	hostile.Session = "20261122T120000-abc"
	for _, rows := range []int{1, 5, 6, 9, 24, 40} {
		for _, cols := range []int{1, 19, 20, 41, 80, 139} {
			b := newBoard(rows, cols, hostile, request("m3xq", "ls"))
			b.before = func(string) []string { return []string{strings.Repeat("story ", 100)} }
			b.at(time.Second, "dreason")
			got := b.draw(rows, cols, began)
			if len(got) != rows && rows >= smallestRows && cols >= smallestCols {
				t.Fatalf("%d rows on %dx%d", len(got), rows, cols)
			}
			for _, r := range got {
				if bad := strings.IndexFunc(r.Text, func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e }); bad >= 0 {
					t.Fatalf("%dx%d: %q", rows, cols, r.Text)
				}
			}
		}
	}
	text := func(b *screenState) (all string) {
		for _, r := range b.draw(24, 80, began) {
			if screen.Columns(r.Text) > 80 {
				t.Errorf("%d columns: %q", screen.Columns(r.Text), r.Text)
			}
			all += r.Text + "\n"
		}
		return all
	}
	if got := text(newBoard(24, 80)); !strings.Contains(got, "nothing waits") {
		t.Error(got)
	}
	if got := text(newBoard(24, 80, request("k7m2", "git", "push"), request("m3xq", "ls"))); !strings.Contains(got, "> k7m2") || !strings.Contains(got, "  m3xq") || !strings.Contains(got, "git push") {
		t.Error(got)
	}
}
