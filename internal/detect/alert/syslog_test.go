package alert

import (
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/policy"
)

var rfc5424 = regexp.MustCompile(`^<8[0-9]>1 2026-11-22T01:02:03\.000004Z [!-~]+ holdfast [0-9]+ [!-~]{1,32} \[holdfast@32473( [a-z]+="([^"\\\]\pC]|\\["\\\]])*")+\] \x{feff}\PC*$`)

func raiseHostile(t *testing.T, address string) {
	t.Helper()
	d := opened(t, Options{Host: "build 1\n"}, policy.AlertSink{Kind: "syslog", Address: address, Timeout: time.Second})
	a := sample("high", "/x\n<81>1 - - forged\x1b[2J\u2028\u202e\xff")
	a.Rule = "FS\"-01]\n"
	a.Technique = []string{"T1\"]\\"}
	d.Raise(a)
	noErrors(t, d.Close())
}

func checkMessage(t *testing.T, got string) {
	t.Helper()
	// The mark at the beginning of the text is of the class C itself.
	head, text, _ := strings.Cut(got, "\ufeff")
	if !rfc5424.MatchString(head+"\ufeff") || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) || !utf8.ValidString(got) {
		t.Errorf("message is %q", got)
	}
	if !strings.HasPrefix(got, "<83>1 ") || !strings.Contains(got, " build_1_ ") {
		t.Errorf("message is %q", got)
	}
}

func TestSyslogDatagrams(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	local, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for address, c := range map[string]net.PacketConn{"unix://" + path: local, "udp://" + udp.LocalAddr().String(): udp} {
		defer c.Close()
		raiseHostile(t, address)
		b := make([]byte, 1<<16)
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, _, err := c.ReadFrom(b)
		if err != nil {
			t.Fatal(address, err)
		}
		checkMessage(t, string(b[:n]))
	}
}

func TestSyslogStream(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		data, _ := io.ReadAll(c)
		c.Close()
		got <- string(data)
	}()
	raiseHostile(t, "tcp://"+l.Addr().String())
	size, message, _ := strings.Cut(<-got, " ")
	if n := len(message); size == "" || strings.TrimLeft(size, "0123456789") != "" || size[0] == '0' || size != strconv.Itoa(n) {
		t.Errorf("%q counts %d bytes", size, n)
	}
	checkMessage(t, message)
}

func TestAMessageHasABound(t *testing.T) {
	l := &syslogSink{host: "-", most: datagramBytes}
	a := sample("high", strings.Repeat("é", 4000))
	a.Title, a.Rule = strings.Repeat("\x00", 3000), strings.Repeat("é]", 3000)
	if m := l.message(document(a)); len(m) > datagramBytes || !utf8.Valid(m) {
		t.Errorf("%d bytes, %q", len(m), m)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "/x", "\x1b[2J", "a\nb", "\u202e\u2066", "\xff\xc3", "\\n", strings.Repeat("\u0300", 300), "\ufe0f\u200b\u00ad\u3164", "]\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a := sample(detect.Severity(s), s)
		a.Rule, a.Title, a.Session, a.Key, a.Explanation, a.Process.Executable = s, s, s, s, s, s
		line := document(a).line()
		if !utf8.ValidString(line) || len(line) > 2048 || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("line is %q", line)
		}
		m := string((&syslogSink{host: "-", most: streamBytes}).message(document(a)))
		if head, _, _ := strings.Cut(m, "\ufeff"); !rfc5424.MatchString(head + "\ufeff") {
			t.Errorf("message is %q", m)
		}
		d, err := decode(document(a).encode())
		if err != nil || d.ID == "" {
			t.Errorf("%v", err)
		}
	})
}
