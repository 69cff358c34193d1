package redact

import (
	"slices"
	"strings"
)

// passwordFlags returns the flags of a program behind which a password follows, joined
// to a short one or as the next argument; none for a program without such flags.
func passwordFlags(program string) []string {
	switch program {
	case "mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass", "mongo", "mongosh", "mongodump",
		"docker", "podman", "skopeo", "helm", "oc":
		return []string{"-p"}
	case "redis-cli":
		return []string{"-a"}
	case "curl":
		return []string{"-u", "--user", "-U", "--proxy-user"}
	case "ldapsearch", "ldapmodify":
		return []string{"-w"}
	case "smbclient":
		return []string{"-U"}
	}
	return nil
}

// joinedAlone lists the programs that take a password only together with its flag:
// alone the flag asks for it.
var joinedAlone = []string{"mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump"}

func (r *Redactor) argv(t *table, argv []string) []string {
	if len(argv) == 0 {
		return argv
	}
	var out []string
	first := wrapped(argv)
	program := baseName(argv[first])
	for i, arg := range argv {
		if i > 0 && isCommand(argv, i) {
			arg = r.command(arg)
		}
		clean := r.mask(t, arg)
		if i > first {
			if v, c := secretArgument(program, argv[first+1:i], arg); c != ordinary {
				clean = r.whole(t, arg, v, c, clean)
			}
		}
		if clean == argv[i] {
			continue
		}
		if out == nil {
			out = slices.Clone(argv)
		}
		out[i] = clean
	}
	if out == nil {
		return argv
	}
	return out
}

// whole masks the argument from v on. Clean is the argument masked as a text: when
// that found nothing but this value, its mark is the better one.
func (r *Redactor) whole(t *table, arg string, v span, c class, clean string) string {
	if isFile(arg, v.from) {
		return clean
	}
	if h, ok := r.value(arg, v, c); ok && h.mark != "" {
		if held := r.mask(t, arg[v.from:v.to]); isMark(held, 0) == len(held) {
			return arg[:v.from] + held
		}
		return arg[:v.from] + h.mark
	}
	return clean
}

// secretArgument says where in an argument a secret is, by the argument
// itself and the one before it.
func secretArgument(program string, before []string, arg string) (span, class) {
	if name, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") && !strings.ContainsAny(name, " \n") {
		if c := classOf(name); c == password || c == token {
			return span{from: len(arg) - len(value), to: len(arg)}, c
		}
	}
	rest := span{to: len(arg)}
	for _, flag := range passwordFlags(program) {
		if program == "docker" || program == "podman" || program == "helm" || program == "oc" {
			if !slices.Contains(before[:min(len(before), 4)], "login") {
				break
			}
		}
		userToo := program == "curl" || program == "smbclient"
		if joined, ok := strings.CutPrefix(arg, flag); ok && joined != "" && !strings.HasPrefix(flag, "--") && !strings.HasPrefix(joined, "-") {
			rest.from = len(flag)
			return credentials(arg, rest, userToo)
		}
		if len(before) > 0 && before[len(before)-1] == flag && !slices.Contains(joinedAlone, program) {
			return credentials(arg, rest, userToo)
		}
	}
	if len(before) == 0 || strings.HasPrefix(arg, "-") {
		return span{}, ordinary
	}
	flag := before[len(before)-1]
	if !strings.HasPrefix(flag, "-") && !strings.HasSuffix(flag, ":_authToken") || strings.ContainsAny(flag, "= \n") {
		return span{}, ordinary
	}
	c := classOf(flag)
	if c != password && c != token {
		return span{}, ordinary
	}
	return rest, c
}

// credentials is the password in v, or in what follows the user and a colon there.
func credentials(arg string, v span, userToo bool) (span, class) {
	if !userToo {
		return v, password
	}
	user, _, ok := strings.Cut(arg[v.from:], ":")
	if !ok {
		user, _, ok = strings.Cut(arg[v.from:], "%") // of SMB
	}
	if !ok {
		return span{}, ordinary
	}
	v.from += len(user) + 1
	return v, password
}
