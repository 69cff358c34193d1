package exposure

import (
	"path"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// jobs looks for what a CI service gives to a job.
func (t *taker) jobs() {
	if Service(t.Env) == "" {
		return
	}
	for _, j := range jobTokens {
		if value := t.env(j.name); value != "" {
			t.add(Finding{Check: j.check, Level: High, What: "a credential of the job", Object: j.name,
				Detail: append([]string{plural(len(value), "character", "characters")}, tokens(j.name+"="+value)...)})
		}
	}
	for _, name := range []string{"GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITLAB_ENV", "BASH_ENV"} {
		file := t.env(name)
		if path.IsAbs(file) && t.canAccess(file, sys.MayWrite) {
			t.add(Finding{Check: "ci-files", Level: Medium, What: "obeyed by later steps, named by " + name, Object: file})
		}
	}
}
