//go:build linux

package inside

func egressActions() map[string]Action {
	return map[string]Action{}
}
