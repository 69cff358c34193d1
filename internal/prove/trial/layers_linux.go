package trial

import (
	"strings"

	"holdfast.dev/holdfast/internal/prove/model"
)

// errnos are the kernel's error messages for a denial, as programs print them
// (strerror(3), and the names themselves).
var errnos = []struct{ text, name string }{
	{"read-only file system", "EROFS"}, {"operation not permitted", "EPERM"}, {"permission denied", "EACCES"},
	{"no such file or directory", "ENOENT"}, {"network is unreachable", "ENETUNREACH"}, {"connection refused", "ECONNREFUSED"},
	{"no route to host", "EHOSTUNREACH"}, {"no such process", "ESRCH"}, {"device or resource busy", "EBUSY"},
	{"address family not supported", "EAFNOSUPPORT"}, {"function not implemented", "ENOSYS"}, {"bad system call", "SIGSYS"},
	{"could not resolve host", "EAI_AGAIN"}, {"temporary failure in name resolution", "EAI_AGAIN"}, {"name or service not known", "EAI_NONAME"}, {"connection timed out", "ETIMEDOUT"}, {"invalid cross-device link", "EXDEV"},
}

// holdfastWords are words in refusals by Holdfast; they identify the layer if the agent
// runs inside it.
var holdfastWords = []string{"holdfast:", "x-holdfast"}

// refusalIn finds the layer that refused in a result, and the word that shows it:
// the errno if there is one.
func (p *play) refusalIn(r model.Result) (layer, word string) {
	if r.Missing != "" {
		return "", ""
	}
	text := strings.ToLower(r.Text)
	for _, o := range holdfastWords {
		if strings.Contains(text, o) {
			return "ours", strings.TrimSuffix(o, ":")
		}
	}
	errno := ""
	for _, e := range errnos {
		if strings.Contains(text, e.text) || strings.Contains(r.Text, e.name) {
			errno = e.name
			break
		}
	}
	by, _ := p.spec.Refusal(r.Text)
	switch {
	case by != "" && string(by) != "sandbox":
		return string(by), errno
	case errno != "":
		return "sandbox", errno // the agent's or, inside, ours: the column says which of them is on
	case by != "":
		return string(by), ""
	case r.Error:
		return "tool", ""
	}
	return "", ""
}
