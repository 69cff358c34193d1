package consent

import (
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// environment describes the variables that differ from the beginning of the
// run: first those that are known to decide what a program does.
func (s *description) environment(a event.Attempt) {
	var known, other []string
	for _, v := range a.Environment {
		if decides(v) {
			known = append(known, v)
		} else {
			other = append(other, v)
		}
	}
	all := append(known, other...)
	for i, v := range all {
		if s.long && i == firstArguments {
			s.warn("%d variables of its environment are not shown here, of %d bytes", len(all)-i, total(all[i:]))
			break
		}
		text := quote(v, s.textLimit())
		if !strings.Contains(v, "=") {
			text += ", which is no longer set"
		}
		if i < len(known) {
			s.warn("environment: %s", text)
		} else {
			s.addLine("environment", "%s", text)
		}
		s.notes("environment", v)
	}
	if a.EnvironmentUnknown {
		s.warn("not all of its environment is known")
	}
}

// variableNames is what the record has of variables: their values may be
// secrets that Holdfast does not know.
func variableNames(environment []string) string {
	names := make([]string, len(environment))
	for i, v := range environment {
		names[i], _, _ = strings.Cut(v, "=")
	}
	return strings.Join(names, ",")
}

// decides reports whether a variable, NAME=VALUE, says where a program finds
// code, configuration, keys or its way to the network. All that differ are
// shown and covered; these are easy to miss.
func decides(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	name = strings.ToUpper(name)
	for _, w := range decidingNames {
		if begin, more := strings.CutSuffix(w, "*"); name == w || more && strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// decidingNames are such variables; a * at the end makes a prefix.
var decidingNames = []string{
	"LD_*", "DYLD_*", "GLIBC_*", "GCONV_*", "MALLOC_*", "LOCPATH", // ld.so(8)
	"BASH_*", "ENV", "IFS", "ZDOTDIR", "PS4", "PROMPT_COMMAND", "SHELL*", "BASHOPTS", // shells
	"HOME", "PATH", "CDPATH", "MANPATH", "XDG_*", "TMPDIR", "EDITOR", "VISUAL", "PAGER", "BROWSER", "LESS*",
	"GIT_*", "SSH_*", "GPG_*", "GNUPGHOME", "HG_*", "HGRCPATH", "SVN_*", "GH_*", "GITHUB_*", "GITLAB_*",
	"NODE_*", "NPM_*", "YARN_*", "PNPM_*", "COREPACK_*", "BUN_*", "DENO_*",
	"PYTHON*", "PIP_*", "UV_*", "POETRY_*", "VIRTUAL_ENV", "CONDA_*", "TWINE_*",
	"PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "PHP*", "LUA*",
	"GO*",
	"CFLAGS", "CXXFLAGS", "LDFLAGS", "MAKEFLAGS", "CARGO_*", "RUST*", "CC", "CXX", "LD", "AR", "MAKEFILES", "CMAKE_*", "CONFIG_SITE",
	"JAVA*", "JDK_*", "_JAVA_OPTIONS", "MAVEN_*", "GRADLE_*", "DOTNET_*", "NUGET_*",
	"DOCKER_*", "BUILDKIT_*", "CONTAINER_*", "KUBE*", "HELM_*", "TF_*", "ANSIBLE_*", "AWS_*", "GOOGLE_*", "CLOUDSDK_*", "AZURE_*", "ARM_*", "VAULT_*",
	"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "SSL_*", "OPENSSL_*", "CURL_*", "REQUESTS_*", "WGETRC", "RES_*", "RESOLV_*", "HOSTALIASES", "LOCALDOMAIN",
	"PG*", "MYSQL_*", "REDISCLI_*", "DATABASE_URL",
}
