// Package realtest runs real programs, as Debian ships them, inside the boundary:
// git, go, node, npm, python, make, gcc, tar, rg, chromium; and those that
// download through its network: curl, wget, pip, cargo, apt, java, ssh. It has
// only tests. They use holdfast only through its command line.
package realtest
