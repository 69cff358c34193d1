//go:build linux

package workspace

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// copyContents copies size bytes; with holes, it copies only the data between them.
func copyContents(ctx context.Context, src, dst int, size int64, holes bool) error {
	if !holes {
		return copyRange(ctx, src, dst, 0, size)
	}
	if err := unix.Ftruncate(dst, size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		data, err := unix.Seek(src, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		end, err := unix.Seek(src, data, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		if err := copyRange(ctx, src, dst, data, min(end, size)); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// copyRange copies the bytes from at to end. A file that became shorter
// meanwhile ends earlier.
func copyRange(ctx context.Context, src, dst int, at, end int64) error {
	out := at
	for at < end {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := unix.CopyFileRange(src, &at, dst, &out, int(min(end-at, 64<<20)), 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return copyBytes(src, dst, at, end) // between some file systems; what is wrong otherwise is wrong there too
		}
		if n == 0 {
			return nil
		}
	}
	return nil
}

func copyBytes(src, dst int, at, end int64) error {
	buf := make([]byte, 256<<10)
	for at < end {
		n, err := unix.Pread(src, buf[:min(int64(len(buf)), end-at)], at)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for done := 0; done < n; {
			m, err := unix.Pwrite(dst, buf[done:n], at+int64(done))
			if err != nil && err != unix.EINTR {
				return err
			}
			done += max(m, 0)
		}
		at += int64(n)
	}
	return nil
}

// SameContent compares size bytes of two files, and passes over holes that both
// have. A file that ends early differs.
func SameContent(a, b int, size int64) bool {
	const chunk = 256 << 10
	x, y := make([]byte, min(size, chunk)), make([]byte, min(size, chunk))
	for at := int64(0); at < size; {
		if size-at > chunk {
			if at = min(DataFrom(a, at, size), DataFrom(b, at, size)); at >= size {
				return true
			}
		}
		n := int(min(size-at, chunk))
		if !filled(a, x[:n], at) || !filled(b, y[:n], at) || string(x[:n]) != string(y[:n]) {
			return false
		}
		at += int64(n)
	}
	return true
}

func filled(fd int, b []byte, at int64) bool {
	for len(b) > 0 {
		n, err := unix.Pread(fd, b, at)
		if n <= 0 && err != unix.EINTR {
			return false
		}
		b, at = b[max(n, 0):], at+int64(max(n, 0))
	}
	return true
}

// DataFrom returns where the next data of a file begins, at or after at.
func DataFrom(fd int, at, size int64) int64 {
	next, err := unix.Seek(fd, at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size
	case err != nil || next < at:
		return at
	}
	return next
}
