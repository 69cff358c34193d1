// Package realtest runs the programs that people run, as Debian ships them,
// inside the boundary: git, go, node, npm, python, make, gcc, tar, rg, chromium;
// and those that fetch things through its network: curl, wget, pip, cargo, apt,
// java, ssh.
// It has only tests. They know holdfast by its command line and by nothing else.
package realtest
