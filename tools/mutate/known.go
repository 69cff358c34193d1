package main

// known are guards whose negation no test notices, with the reason why that is
// acceptable. A row that matches no guard fails the test of this package.
var known = []row{
	{"internal/credentials/path.go", "rootsOf", "err == nil", "who comes to the root of a tree by its real path is known by its inode too"},
	{"internal/network/netstack/link.go", "deliver", "len(p.bytes) > packetBytes/2", "the segment arrives either way: it is about how much memory a small one holds"},
	{"internal/policy/exposed.go", "PruneExposed", "!errors.Is(rerr, fs.ErrNotExist)", "another run must forget the same tree between the list and the removal"},
	{"internal/supervise/landlock_audit.go", "auditStatus", "err != nil", "the kernel answers about its audit only in the first PID namespace, and mutants run in one of their own: TestRootLandlockAudit… is skipped there"},
	{"internal/supervise/proctable.go", "load", "len(t.threads) >= maxThreads", "bounds a cache: what it drops is read from /proc again"},
}

type row struct{ file, function, text, reason string }

// reason returns why the negation of g may pass unnoticed; "" if it may not.
func reason(g guard) string {
	for _, k := range known {
		if k.file == g.file && k.function == g.function && k.text == g.text {
			return k.reason
		}
	}
	return ""
}
