package logs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/logs/stories"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// million makes the log of a run with a million events, such as an installation
// of packages has them, in the state directory of a user.
func million(b *testing.B) *app {
	b.Helper()
	state := b.TempDir()
	log, err := audit.Create(filepath.Join(state, "holdfast", "log"), audit.Options{Session: "s", MaxBytes: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint64(1_000_000) {
		e := event.Event{Time: time.Now(), Sensor: event.Syscall, N: i + 1, Action: event.FileWrite, Verdict: event.Allowed,
			Object:  fmt.Sprint("node_modules/package", i%400, "/lib/file", i%50_000, ".js"),
			Process: event.Process{PID: 10 + int(i%50), Exec: 1 + i/2000}, Detail: map[string]string{"mode": "0644"}}
		e.Resolved = "/home/you/app/" + e.Object
		switch {
		case i%2000 == 0:
			e.Action = event.ProcExec
			e.Process.Argv, e.Process.Executable, e.Process.Cwd = []string{"node", "install.js"}, "/usr/bin/node", "/home/you/app"
		case i%500 == 1:
			e.Action, e.Verdict, e.Layer, e.Error, e.Object, e.Resolved = event.FileLookup, event.Denied, event.LayerView, "ENOENT", "/home/you/.npmrc", ""
		}
		if err := log.Emit(e); err != nil {
			b.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	return &app{&command.App{Stdout: io.Discard, Stderr: io.Discard, Dir: state, Env: []string{"HOME=" + state, "XDG_STATE_HOME=" + state}}}
}

// BenchmarkLogOfAMillion times what looks at every record of a long run.
func BenchmarkLogOfAMillion(b *testing.B) {
	a := million(b)
	r, err := archive.Open(a.App)
	if err != nil {
		b.Fatal(err)
	}
	info, err := r.Find(nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	for _, condition := range []string{`verdict == "denied" && object.startsWith("/home")`, `argv.exists(a, a == "-c")`, `resolved.matches("\\.ssh/")`, "true"} {
		b.Run("query "+condition, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := a.query(ctx, query{}, condition, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("tell", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := stories.Read(ctx, r, info, stories.Reading{Verify: true}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
