//go:build linux

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path"
)

// recordCalls are rows of calls beside the ones that programs usually make: what
// they do must be in the record, and nothing that they only seem to do.
func recordCalls() []Row {
	return []Row{
		{ID: "HST-168", Title: "a program is asked about and not executed, and the record has it as executed", Refs: []string{"execveat(2) AT_EXECVE_CHECK"},
			Action: "check-exec", Harmless: "to ask changes nothing", Oracle: both(whole, unrecorded(Attempt{Action: "proc.exec", Arg: "probe-never-executed"}))},
		{ID: "HST-169", Title: "datagrams and connections leave by calls that carry the address in a message, and nobody records it", Refs: []string{"sendmsg(2)", "sendmmsg(2)", "tcp(7) MSG_FASTOPEN"},
			Action: "talk-messages", Harmless: "nobody answers there",
			Oracle: recorded(Attempt{Action: "sock.send", Object: "127.0.0.1:47021"}, Attempt{Action: "sock.send", Object: "127.0.0.1:47022"},
				Attempt{Action: "sock.send", Object: "127.0.0.1:47023"}, Attempt{Action: "sock.connect", Object: "127.0.0.1:47024"}, Attempt{Action: "sock.connect", Object: "127.0.0.1:47025"})},
		{ID: "HST-170", Title: "a name is exchanged after it was read for the record and before the kernel reads it, and the record names a file that was not made", Refs: []string{"seccomp_unotify(2), NOTES"},
			Files: map[string]string{"W/exchanged/keep": ""}, Action: "exchange-names", Harmless: "files of the workspace may be made; what counts is that each is recorded by its name",
			Oracle: both(whole, madeAsSaid("W/exchanged"))},
	}
}

// madeAsSaid demands that the record has each file of a directory as made, and no
// other.
func madeAsSaid(dir string) func(*World, Observation) []string {
	return func(w *World, _ Observation) (out []string) {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		said := map[string]bool{}
		err = rec.each(func(line []byte) error {
			var a Attempt
			if err := json.Unmarshal(line, &a); err != nil {
				return fmt.Errorf("a line is no JSON: %w", err)
			}
			if at := cmp.Or(a.Resolved, a.Object); a.Action == "file.write" && a.Verdict == "allowed" && a.Error == "" && path.Dir(at) == w.Path(dir) {
				said[path.Base(at)] = true
			}
			return nil
		})
		if err != nil {
			return []string{"the record: " + err.Error()}
		}
		files, err := os.ReadDir(w.Path(dir))
		if err != nil {
			return []string{err.Error()}
		}
		for _, f := range files {
			if f.Name() != "keep" && !said[f.Name()] {
				out = append(out, notRecorded+"file.write "+f.Name())
			}
			delete(said, f.Name())
		}
		for name := range said {
			out = append(out, "the record has what was not made: "+name)
		}
		return out
	}
}

// unrecorded demands that the record does not have the attempt.
func unrecorded(a Attempt) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		absent, err := rec.missing([]Attempt{a})
		switch {
		case err != nil:
			return []string{"the record: " + err.Error()}
		case len(absent) == 0:
			return []string{"the record has what did not happen: " + a.Action + " " + a.Arg}
		}
		return nil
	}
}
