// Package abitest enters the kernel by the doors that Go itself never uses. It
// is for the tests of the system call filter only; nothing that is shipped
// imports it.
package abitest
