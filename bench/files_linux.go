package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// The names for -only of the parts about large workspaces. A million files take
// so long to make and to remove that they are a separate part.
const (
	filesPart   = "files"
	millionPart = "million"
)

// firstLimit is the limit of the processor time of the first run in a workspace,
// in µs per file, above that of the first run in an empty one.
const firstLimit = 2.0

// largeWorkspace is a number of files in a workspace, and how many ms longer than
// in an empty one the second and later runs may take.
type largeWorkspace struct {
	files int
	limit float64
}

func (b *bench) files() (*section, error) {
	s := b.newSection(filesPart, "Large workspaces", nil)
	return s, b.largeWorkspaces(s, largeWorkspace{20_000, 5}, largeWorkspace{200_000, 15})
}

func (b *bench) millionFiles() (*section, error) {
	s := b.newSection(millionPart, "A workspace of a million files", nil)
	return s, b.largeWorkspaces(s, largeWorkspace{1_000_000, 50})
}

// firstRounds is how often a first run is measured.
const firstRounds = 5

// largeWorkspaces measures starts of `true` in workspaces that contain only
// files, alternating with starts in an empty one.
func (b *bench) largeWorkspaces(s *section, all ...largeWorkspace) error {
	if err := b.opensFUSE(); err != nil {
		return err
	}
	if b.cpu.parent == "" {
		b.cpu.parent = newCPUMeter().parent
	}
	s.intro = []string{
		fmt.Sprintf("Starts of `true` with the standard record, in a workspace and in an empty one in turn. The files have a line each, %d lie in a directory, and the kernel has all of them in its caches.", filesPerDirectory),
		"A first run has a new home, so that nothing is known of the workspace; the first run in the empty workspace has one too.",
	}
	t := table{header: []string{"files", "rounds", "empty ms", "later run ms", "ms more", "its processor time ms", "first run ms", "first run, processor time ms", "µs a file"}}
	for _, w := range all {
		if b.options.quick {
			w.files /= 10
		}
		b.logf("%s: %s", s.only, thousands(w.files))
		f, err := b.startsIn(w.files)
		if b.ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			s.fail("%s files: %v", thousands(w.files), err)
			continue
		}
		s.verdicts = append(s.verdicts, f.verdicts(w)...)
		t.add(f.row(w)...)
	}
	s.tables = []captioned{{caption: "Starts: " + s.only, table: t}}
	s.load[1] = load()
	return b.forgetRecords()
}

// starts are the samples in one workspace and in an empty one, of later and first
// runs.
type starts struct{ later, first map[bool][]sample }

// inFiles and inEmpty are the keys of starts.
const (
	inFiles = true
	inEmpty = false
)

// startsIn makes a workspace and measures starts there.
func (b *bench) startsIn(files int) (starts, error) {
	f := starts{later: map[bool][]sample{}, first: map[bool][]sample{}}
	empty := workload{dir: "empty", prepare: noFixture}
	full := workload{dir: "files-" + strconv.Itoa(files), prepare: func(b *bench, dir string) error { return b.makeFiles(dir, files) }}
	dirs := map[bool]string{inEmpty: b.workspace(empty.dir), inFiles: b.workspace(full.dir)}
	if err := errors.Join(b.fixture(empty), b.fixture(full)); err != nil {
		return f, err
	}
	c := contestant{name: holdfast, program: b.holdfast, before: []string{"run", "--"}, env: b.env}
	for round := range min(firstRounds, b.options.rounds) {
		for _, in := range []bool{inEmpty, inFiles} {
			fresh := c
			home, err := b.freshHome(fmt.Sprintf("%d-%d-%t", files, round, in))
			if err != nil {
				return f, err
			}
			fresh.env = append([]string{"HOME=" + home}, b.env[1:]...)
			_, s, err := b.runCopies(fresh, dirs[in], []string{"true"}, 1)
			if err != nil {
				return f, err
			}
			f.first[in] = append(f.first[in], s)
		}
	}
	for round := range b.options.rounds + 1 { // the first to warm up
		for _, in := range []bool{inEmpty, inFiles} {
			_, s, err := b.runCopies(c, dirs[in], []string{"true"}, 1)
			if err != nil {
				return f, err
			}
			if round > 0 {
				f.later[in] = append(f.later[in], s)
			}
		}
	}
	return f, nil
}

// freshHome makes a home in which Holdfast has never run.
func (b *bench) freshHome(name string) (string, error) {
	home := filepath.Join(b.dir, "work", "home-"+name)
	if err := os.Mkdir(home, 0o755); err != nil {
		return "", fmt.Errorf("making a home: %w", err)
	}
	return home, b.user.chownTree(home)
}

// addedTime is the difference of the medians in ms.
func (f starts) addedTime(of map[bool][]sample, values func([]sample) []float64) float64 {
	return spreadOf(values(of[inFiles])).median - spreadOf(values(of[inEmpty])).median
}

// perFile is the cost per file of a first run, in µs of processor time.
func (f starts) perFile(files int) float64 { return 1000 * f.addedTime(f.first, cpus) / float64(files) }

func (f starts) verdicts(w largeWorkspace) []verdict {
	n := thousands(w.files) + " files"
	return []verdict{
		judge("start in "+n+", second run and later: ms more than in an empty workspace", w.limit, f.addedTime(f.later, walls), "%.1f"),
		judge("start in "+n+", first run: µs of processor time a file", firstLimit, f.perFile(w.files), "%.2f"),
	}
}

func (f starts) row(w largeWorkspace) []string {
	of := func(all []sample, values func([]sample) []float64) string {
		return number(spreadOf(values(all)).median)
	}
	return []string{
		thousands(w.files), strconv.Itoa(len(f.later[inFiles])), of(f.later[inEmpty], walls), of(f.later[inFiles], walls), number(f.addedTime(f.later, walls)),
		of(f.later[inFiles], cpus), of(f.first[inFiles], walls), of(f.first[inFiles], cpus), fmt.Sprintf("%.2f", f.perFile(w.files)),
	}
}
