package syslog

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestHeader(t *testing.T) {
	at := time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC)
	for _, tt := range []struct{ name, host, id, want string }{
		{"a machine without a name", "", "checkpoint", "- holdfast PID checkpoint"},
		{"a name that the kernel takes and a header does not", "build 1\n<1>", "é", "build_1_<1> holdfast PID __"},
		{"a long one", strings.Repeat("h", 300), "", strings.Repeat("h", 255) + " holdfast PID -"},
		{"quotes and a long id", `a"b\c`, strings.Repeat("i", 40), "a_b_c holdfast PID " + strings.Repeat("i", 32)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := "<109>1 2026-11-22T01:02:03.000004Z " + strings.Replace(tt.want, "PID", fmt.Sprint(os.Getpid()), 1)
			if got := Header(109, at, tt.host, tt.id); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
