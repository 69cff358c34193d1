//go:build linux

package probe

const classEnvironment = "env.leakage-injection"

func environmentRows() []Row {
	return []Row{}
}
