//go:build linux

package native

import "holdfast.dev/holdfast/internal/boundary/native/abitest"

// seccompInt80 enters the 32 bit call list; its arguments are all harmless zeroes.
func seccompInt80(nr uint32) int32 { return abitest.Int80(nr, 0, 0, 0) }
