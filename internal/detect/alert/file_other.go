//go:build !unix

package alert

// openSafely is empty: no run is recorded on such a system.
const openSafely = 0
