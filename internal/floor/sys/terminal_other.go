//go:build !linux

package sys

import (
	"errors"
	"fmt"
	"os"
)

// FlushInput is an error: only Linux is known here.
func FlushInput(*os.File) error {
	return fmt.Errorf("flushing terminal input: %w", errors.ErrUnsupported)
}
