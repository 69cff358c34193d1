//go:build linux

package probe

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/inside"
)

//go:embed carried
var carried embed.FS

// WriteProber writes the static program that runs inside to dir: the small one
// that this build carries, or else a copy of this program that acts as one.
func WriteProber(dir string) (path string, err error) {
	program, err := carriedProber()
	if errors.Is(err, fs.ErrNotExist) {
		var own []byte
		if own, err = os.ReadFile("/proc/self/exe"); err == nil {
			program, err = inside.AsProber(own)
		}
	}
	if err != nil {
		return "", fmt.Errorf("finding the prober: %w", err)
	}
	path = filepath.Join(dir, "prober")
	return path, programs.Write(path, program, 0o755)
}

func carriedProber() ([]byte, error) {
	packed, err := carried.ReadFile("carried/prober.gz")
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
