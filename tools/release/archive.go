package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// archive packs the tree dir below top: sorted by name, owned by root, with the
// same time for all files.
func archive(path, top, dir string, date time.Time) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	packed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.Join(top, rel), ModTime: date, Format: tar.FormatUSTAR, Uname: "root", Gname: "root"}
		if e.IsDir() {
			h.Typeflag, h.Mode, h.Name = tar.TypeDir, 0o755, h.Name+"/"
			return w.WriteHeader(h)
		}
		h.Typeflag, h.Mode, h.Size = tar.TypeReg, fileMode(info), info.Size()
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	return errors.Join(err, w.Close(), packed.Close())
}

// fileMode is the mode of a released file; it does not depend on the umask.
func fileMode(info fs.FileInfo) int64 {
	if info.Mode()&0o111 != 0 {
		return 0o755
	}
	return 0o644
}
