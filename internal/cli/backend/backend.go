// Package backend names the boundary of this system ([New]). No other package of the
// command line knows which one that is. Elsewhere than on Linux there is none.
package backend
