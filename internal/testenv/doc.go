// Package testenv tells tests what this machine can do, and is the only package
// that may skip a test. A test states what it needs; if that is absent the test
// is skipped, unless WANT_FEATURES promised it: then its absence is a failure.
// Without such a promise a broken machine looks the same as a passing suite.
//
// The package is for tests only: no code in the binary imports it.
package testenv
