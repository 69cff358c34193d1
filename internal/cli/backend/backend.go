// Package backend names the boundary of this system ([New]). No other package of the
// command line knows which one it is. Only Linux has one.
package backend
