package alert

import (
	"context"
	"fmt"
	"io"
	"os"
)

// file appends a line of JSON for each alert. It is opened each time, so that
// it may be moved away and created again.
type file struct{ path string }

func newFile(path string) (sink, error) {
	s := file{path}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	return s, f.Close()
}

// open opens the file, and accepts nothing else in its place: the maker of a
// link could choose what is written to, and a pipe would block.
func (s file) open() (*os.File, error) {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|openSafely, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the file for alerts: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", escape(s.path, 200))
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("opening the file for alerts: %w", err)
	}
	return f, nil
}

func (s file) send(_ context.Context, body []byte) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	line := append(append([]byte(nil), body...), '\n')
	if endsInMidLine(f) {
		line = append([]byte{'\n'}, line...)
	}
	_, err = f.Write(line)
	if end := f.Close(); err == nil {
		err = end
	}
	if err != nil {
		return fmt.Errorf("writing an alert: %w", err)
	}
	return nil
}

// endsInMidLine reports whether the last line was cut, by a full disk or a crash.
func endsInMidLine(f *os.File) bool {
	at, err := f.Seek(-1, io.SeekEnd)
	if err != nil {
		return false // it is empty
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], at)
	return err == nil && last[0] != '\n'
}
