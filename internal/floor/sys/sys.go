// Package sys is the only door to the kernel for the packages above it: raw
// system calls, ownership of descriptors and detection of features. A wrapper
// stands here once, retries EINTR where the manual page allows it, and returns
// the error with the name of the call.
package sys
