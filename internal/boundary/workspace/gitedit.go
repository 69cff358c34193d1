//go:build linux

package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// ApplyConfig makes the changes, all of one git configuration, in the file on the host.
// Each setting must still have the values that it had when the run began, or have the new
// ones already. As git does, it holds FILE.lock meanwhile. Nothing inside may be able to
// write to the directory: check says so just before the file is replaced.
func ApplyConfig(changes []ConfigChange, check func() error) error {
	if len(changes) == 0 {
		return nil
	}
	name := string(changes[0].File)
	if err := applyConfig(name, changes, check); err != nil {
		return fmt.Errorf("changing %s: %w", floortext.Word(name), err)
	}
	return nil
}

func applyConfig(name string, changes []ConfigChange, check func() error) (err error) {
	dir, err := openResolved(path.Dir(name), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	base := path.Base(name)
	fd, err := unix.Openat(dir, base+".lock", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EEXIST) {
		return &lockedError{name + ".lock"}
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name+".lock")
	defer func() {
		if f.Close(); err != nil {
			unix.Unlinkat(dir, base+".lock", 0)
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	data, ok := readFile(dir, base, MaxConfig)
	if !ok {
		return errors.New("it is no plain file any more, or too large")
	}
	for _, c := range changes {
		if data, err = c.edit(data); err != nil {
			return fmt.Errorf("%s: %w", floortext.Word(c.Name()), err)
		}
	}
	if st.Uid != uint32(os.Geteuid()) {
		err = f.Chown(int(st.Uid), int(st.Gid))
	}
	_, werr := f.Write(data)
	if err := errors.Join(err, werr, f.Chmod(os.FileMode(st.Mode&0o777)), f.Sync(), check()); err != nil {
		return err
	}
	return unix.Renameat(dir, base+".lock", dir, base)
}

// lockedError means that a configuration is being written.
type lockedError struct{ lock string }

func (e *lockedError) Error() string { return "another program holds " + floortext.Word(e.lock) }

// Hint says what to do.
func (e *lockedError) Hint() string {
	return "wait until git is done there; if no git runs, remove the file"
}

// edit makes one change in the text of a configuration. All other settings, and comments,
// stay as they are.
func (c ConfigChange) edit(data []byte) ([]byte, error) {
	if c.Refused != "" {
		return nil, errors.New(c.Refused)
	}
	was, err := parseConfig(data)
	if err != nil {
		return nil, err
	}
	s := c.setting()
	switch current := was.byName()[s.id()]; {
	case slices.Equal(current, c.Now):
		return data, nil
	case !slices.Equal(current, c.Was):
		return nil, errors.New("it is not what it was when the run began")
	}
	out := c.insert(data, was)
	for _, old := range slices.Backward(was.settings) {
		if old.same(s) {
			out = cut(out, old)
		}
	}
	now, err := parseConfig(out)
	if err != nil || !slices.Equal(now.byName()[s.id()], c.Now) || !slices.Equal(now.others(s), was.others(s)) {
		return nil, errors.New("its file cannot be changed without changing more")
	}
	return out, nil
}

// insert puts the new values behind the last setting of their section, or at the end.
func (c ConfigChange) insert(data []byte, was config) []byte {
	var lines strings.Builder
	for _, v := range c.Now {
		lines.WriteString("\t" + c.Key + " = " + quoteValue(v) + "\n")
	}
	at, head := len(data), "["+c.Section+"]\n"
	if c.Sub != nil {
		head = "[" + c.Section + ` "` + escapeValue(*c.Sub) + "\"]\n"
	}
	s := c.setting()
	for _, old := range was.settings {
		if s.key = old.key; old.same(s) {
			at, head = old.to, ""
		}
	}
	if at > 0 && data[at-1] != '\n' {
		head = "\n" + head
	}
	if len(c.Now) == 0 {
		return bytes.Clone(data)
	}
	return slices.Concat(data[:at], []byte(head+lines.String()), data[at:])
}

// cut takes a setting out of the text, with its line and with a header that is left
// without anything.
func cut(data []byte, s setting) []byte {
	from, to := s.from, s.to
	for from > 0 && space(data[from-1]) {
		from--
	}
	if from > 0 && data[from-1] == ']' && data[to-1] == '\n' { // the header is on the same line
		to--
	}
	before, after := data[:from], data[to:]
	head := bytes.TrimRight(before, " \t\n")
	rest := bytes.TrimLeft(after, " \t\n")
	if at := bytes.LastIndexByte(head, '\n') + 1; len(head) > 0 && head[len(head)-1] == ']' && head[at] == '[' && (len(rest) == 0 || rest[0] == '[') {
		before = head[:at]
		after = rest
	}
	return slices.Concat(before, after)
}

// others are the settings but one, as texts.
func (c config) others(but setting) (out []string) {
	for _, s := range c.settings {
		if !s.same(but) {
			out = append(out, fmt.Sprintf("%q %q %t", s.name(), s.value, s.bare))
		}
	}
	return out
}
