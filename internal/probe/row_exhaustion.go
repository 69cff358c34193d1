//go:build linux

package probe

const classExhaustion = "res.exhaustion"

func exhaustionRows() []Row {
	return []Row{}
}
