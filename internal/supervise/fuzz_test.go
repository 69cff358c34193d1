//go:build linux

package supervise

import (
	"bytes"
	"path"
	"strings"
	"testing"
)

func FuzzAddress(f *testing.F) {
	f.Add([]byte{2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{10, 0, 1, 187, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0})
	f.Add([]byte("\x01\x00/run/socket\x00rest"))
	f.Add([]byte("\x01\x00\x00abstract\x00\xff"))
	f.Add([]byte{16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		family, text, at := address(b)
		if family == "" {
			t.Errorf("no family of %q", b)
		}
		if len(at) > 0 && (text != "unix:"+string(at) || bytes.IndexByte(at, 0) >= 0) {
			t.Errorf("path %q of %q", at, text)
		}
	})
}

func TestAddress(t *testing.T) {
	for text, b := range map[string][]byte{
		"127.0.0.1:80":         {2, 0, 0, 80, 127, 0, 0, 1},
		"[fe80::1%2]:443":      append(append([]byte{10, 0, 1, 187, 0, 0, 0, 0, 0xfe, 0x80}, make([]byte, 13)...), 1, 2, 0, 0, 0),
		"[::ffff:10.0.0.1]:53": {10, 0, 0, 53, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1, 9, 0, 0, 0},
		"unix:/run/x":          []byte("\x01\x00/run/x\x00"),
		"unix:@a\x00b":         []byte("\x01\x00\x00a\x00b"),
		"unix:":                {1, 0},
		"netlink:7":            {16, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0},
		"vsock:":               {40, 0, 0, 0},
		"inet:":                {2, 0, 0},
		"":                     {1},
	} {
		if _, got, _ := address(b); got != text {
			t.Errorf("%v: %q, want %q", b, got, text)
		}
	}
}

func FuzzInterpreter(f *testing.F) {
	for _, s := range []string{"#!/bin/sh -e\n", "#!", "#! /usr/bin/env\tpython3 \r\n", "#!\n/bin/sh", "\x7fELF", "#!/bin/sh\x00x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		line := interpreter(b)
		if strings.ContainsAny(line, "\n\x00") || line != strings.Trim(line, " \t") || line != "" && !bytes.HasPrefix(b, []byte("#!")) {
			t.Errorf("%q of %q", line, b)
		}
	})
}

func FuzzStatus(f *testing.F) {
	f.Add([]byte("Name:\tsh\nTgid:\t12\nPPid:\t1\nUid:\t0\t0\t0\t5\nGid:\t0\t0\t0\t6\nGroups:\t4 24 \nNSpid:\t12\t3\nCapEff:\t000001ffffffffff\n"))
	f.Add([]byte("Name:\tTgid:\t7\nTgid:\tx\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseStatus(b); ok && s.tgid <= 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestStatus(t *testing.T) {
	s, ok := parseStatus([]byte("Name:\tsh\nTgid:\t12\nPPid:\t1\nUid:\t0\t0\t0\t5\nGid:\t0\t0\t0\t6\nGroups:\t4 24 \nNSpid:\t12\t3\nCapEff:\t0000000000000002\n"))
	if !ok || s.tgid != 12 || s.parent != 1 || s.inner != 3 || s.creds.uid != 5 || s.creds.gid != 6 || !s.creds.inGroup(24) || s.creds.inGroup(25) || !s.creds.override || s.creds.owner {
		t.Errorf("%+v %v", s, ok)
	}
}

func FuzzHash(f *testing.F) {
	f.Add("1 2 3 4 5 " + strings.Repeat("ab", 32) + " \"/bin/sh\"\n")
	f.Add("1 2 3 4 5 zz \"\"\n")
	f.Fuzz(func(t *testing.T, line string) {
		if _, c, ok := parseHash(line); ok && !c.lasting {
			t.Errorf("%q", line)
		}
	})
}

func FuzzCompact(f *testing.F) {
	f.Add("//a/./b/..//c/")
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "..") || strings.Contains(s, "\x00") {
			return
		}
		want := path.Clean("/" + s)
		if got := string(compact([]byte(s))); got != want && !(got == "" && want == "/") {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	})
}
