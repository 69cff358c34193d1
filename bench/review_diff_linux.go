package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/review"
)

// reviewDiffPart is the name for -only of the part about the diff of a review.
const reviewDiffPart = "review-diff"

// reviewDiffLimit is how long the diff of 20,000 changed files may take, in s.
const reviewDiffLimit = 2.0

// reviewOutput is the output of peerReview.
type reviewOutput struct {
	Changes, Hunks int
	Collect, Diff  time.Duration
	CPU            time.Duration
	PeakKiB        int64
}

// peerReview makes a workspace and what a run left of it, and compares them as
// `holdfast review` does: `bench peer review CHANGED NEW DIR`.
func peerReview(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("review needs 3 arguments, not %d", len(args))
	}
	changed, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("reading a number: %w", err)
	}
	fresh, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("reading a number: %w", err)
	}
	dir := args[2]
	defer os.RemoveAll(dir)
	if err := reviewTree(dir, changed, fresh); err != nil {
		return err
	}
	out, err := compare(dir)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

func compare(dir string) (out reviewOutput, err error) {
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	began := time.Now()
	s, err := review.Collect(context.Background(), review.Source{Workspace: dir + "/ws", Dir: dir + "/review", Mode: review.Overlay, Rules: workspace.DefaultRules(), Began: time.Now()})
	if err != nil {
		return out, err
	}
	defer s.Close()
	out.Collect, out.Changes = time.Since(began), len(s.Changes)
	began = time.Now()
	for _, c := range s.Changes {
		d, err := s.Diff(c)
		if err != nil {
			return out, err
		}
		out.Hunks += len(d.Hunks)
	}
	out.Diff = time.Since(began)
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	out.CPU = time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano())
	out.PeakKiB = after.Maxrss
	return out, err
}

// reviewTree makes source files of about 100 lines, with some lines of each
// changed by the run, and new, empty files.
func reviewTree(dir string, changed, fresh int) error {
	for i := range max(changed, fresh) {
		sub := fmt.Sprintf("pkg%d/dir%d", i/2000, i/50)
		var text strings.Builder
		for l := range 100 {
			fmt.Fprintf(&text, "\tline %d of file %d, as long as lines are\n", l, i)
		}
		was := text.String()
		is := strings.Replace(strings.Replace(was, "line 10 ", "changed 10 ", 1), "line 70 ", "changed 70 ", 1)
		files := map[string]string{}
		if i < changed {
			files["ws/"+sub+"/file"+strconv.Itoa(i)+".go"] = was
			files["review/upper/"+sub+"/file"+strconv.Itoa(i)+".go"] = is
		}
		if i < fresh {
			files["review/upper/"+sub+"/new"+strconv.Itoa(i)] = ""
		}
		for name, content := range files {
			p := filepath.Join(dir, name)
			if i%50 == 0 || i == 0 {
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					return err
				}
			}
			if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(dir+"/ws", 0o755)
}

// reviewDiff measures the cost of showing what a run changed.
func (b *bench) reviewDiff() (*section, error) {
	s := b.newSection(reviewDiffPart, "Diff of a review", nil)
	changed, fresh := 20_000, 1_000_000
	if b.options.quick {
		changed, fresh = 500, 5_000
	}
	s.intro = []string{fmt.Sprintf("%s files of 100 lines, two of which a run changed in each: found, judged by the list of names and compared line by line, by the package that `holdfast review` uses. Medians of 3. Then %s new files, for the memory.", thousands(changed), thousands(fresh))}
	t := table{header: []string{"files", "found in s", "compared in s", "processor time in s", "peak KiB"}}
	w := workload{dir: "opens", prepare: prepareOpens}
	if err := b.fixture(w); err != nil {
		return nil, err
	}
	self := filepath.Join(b.workspace("opens"), "peer")
	took := math.NaN()
	for _, size := range []struct{ changed, fresh, times int }{{changed, 0, 3}, {0, fresh, 1}} {
		b.logf("review-diff: %d changed, %d new", size.changed, size.fresh)
		var found, diff, cpu []float64
		var peak int64
		for range size.times {
			way := contestant{name: bare, env: b.env}
			out, _, err := b.runCopies(way, b.home(), []string{self, "peer", "review", strconv.Itoa(size.changed), strconv.Itoa(size.fresh), filepath.Join(b.home(), "review-diff")}, 1)
			var c reviewOutput
			if err == nil {
				err = json.Unmarshal([]byte(out), &c)
			}
			if err == nil && c.Changes != size.changed+size.fresh {
				err = fmt.Errorf("found %d changes", c.Changes)
			}
			if err != nil {
				s.fail("%v", err)
				break
			}
			found, diff, cpu, peak = append(found, c.Collect.Seconds()), append(diff, c.Diff.Seconds()), append(cpu, c.CPU.Seconds()), max(peak, c.PeakKiB)
		}
		if len(found) == 0 {
			continue
		}
		t.add(thousands(size.changed+size.fresh), fmt.Sprintf("%.2f", spreadOf(found).median), fmt.Sprintf("%.2f", spreadOf(diff).median), fmt.Sprintf("%.2f", spreadOf(cpu).median), fmt.Sprint(peak))
		if size.changed > 0 {
			took = spreadOf(found).median + spreadOf(diff).median
		}
	}
	s.verdicts = []verdict{judge("review: diff of 20,000 changed files, s", reviewDiffLimit, took, "%.2f")}
	s.tables = []captioned{{caption: "Finding and comparing", table: t}}
	s.load[1] = load()
	return s, nil
}
