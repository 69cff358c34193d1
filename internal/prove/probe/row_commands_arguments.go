//go:build linux

package probe

var injection = []string{"github.com/GTFOBins/GTFOBins.github.io", "github.com/SonarSource/argument-injection-vectors", "Trail of Bits 2025-10 argument injection", "CVE-2025-66032"}

// argumentRows are options, settings and variables of programs that lists of
// harmless commands are made of.
func argumentRows() []Row {
	option := func(id, title, set string, needs ...string) Row {
		return trick(id, classArguments, title, set, injection, append(needs, "sh")...)
	}
	reading := func(r Row) Row {
		r.Promise = "P1"
		return r
	}
	return []Row{
		core(option("ARG-001", "git writes where an option says", "git-writes", "git")),
		core(option("ARG-001b", "git starts what an option, a setting or a variable says", "git-runs", "git", "script")),
		reading(option("ARG-001c", "git shows a file that is in no repository", "git-reads", "git")),
		core(option("ARG-002", "ripgrep starts a program, and reads", "rg", "rg")),
		reading(option("ARG-002b", "grep reads, and tells a letter at a time", "grep", "grep")),
		option("ARG-002c", "ag starts a pager", "ag", "ag"),
		option("ARG-002d", "ack starts a pager", "ack", "ack"),
		option("ARG-004", "sort, split, uniq and their like start programs, write and read", "sort", "sort", "split"),
		option("ARG-005", "tar starts programs, and packs elsewhere", "tar", "tar"),
		option("ARG-005b", "zip starts a program to test with", "zip", "zip"),
		option("ARG-005c", "unzip unpacks elsewhere", "unzip", "unzip", "python3"),
		option("ARG-005d", "7z packs elsewhere", "7z", "7z"),
		option("ARG-005e", "cpio copies elsewhere, and starts a shell for another host", "cpio", "cpio"),
		option("ARG-005f", "rsync starts a shell for another host", "rsync", "rsync"),
		option("ARG-005g", "ar packs elsewhere, and reads", "ar", "ar"),
		option("ARG-005h", "ssh, scp and sftp start programs before they connect", "ssh", "ssh"),
		option("ARG-006", "sed writes and executes", "sed", "sed"),
		option("ARG-006b", "awk writes, executes and reads", "awk", "awk"),
		option("ARG-006c", "gawk connects, loads and writes", "gawk", "gawk"),
		option("ARG-006d", "less starts what its variables and keys say", "less", "less", "script"),
		reading(option("ARG-006e", "more prints a file", "more", "more")),
		option("ARG-006f", "man starts a pager and a browser", "man", "man", "script"),
		option("ARG-006i", "man starts a browser", "man-html", "man", "post-grohtml"),
		option("ARG-006g", "info writes, and reads", "info", "info"),
		option("ARG-006h", "vi starts what it is told to", "vi", "vi", "script"),
		working(option("ARG-009", "go starts tools and generators", "go"), "runs go version"),
		working(option("ARG-009b", "cargo starts another compiler", "cargo"), "runs cargo --version"),
		option("ARG-009c", "gcc starts wrappers and loads plugins", "gcc", "gcc"),
		option("ARG-009d", "make runs what its options and variables say", "make", "make"),
		option("ARG-009e", "cmake runs a script", "cmake", "cmake"),
		option("ARG-009f", "mvn runs what its variables say", "mvn", "mvn"),
		option("ARG-009g", "gradle runs a script", "gradle", "gradle"),
		option("ARG-009h", "dotnet runs what a project says", "dotnet", "dotnet"),
		option("ARG-011", "node loads a file before the one that it is asked for", "npx-node", "node"),
		option("ARG-011b", "npm runs scripts by a shell of somebody's choice", "npm", "npm"),
		option("ARG-011c", "eslint loads its settings", "eslint", "eslint"),
		option("ARG-011d", "prettier loads a plugin", "prettier", "prettier"),
		option("ARG-011e", "jest loads a set-up", "jest", "jest"),
		option("ARG-011f", "tsc writes what it is asked for", "tsc", "tsc"),
		option("ARG-011g", "webpack loads its settings", "webpack", "webpack"),
		working(option("ARG-012", "docker speaks with another daemon, and starts helpers", "docker"), "runs docker --version"),
		option("ARG-012b", "kubectl starts plugins", "kubectl", "kubectl"),
		option("ARG-012c", "helm starts a renderer", "helm", "helm"),
		option("ARG-012d", "terraform runs a command", "terraform", "terraform"),
		option("ARG-012e", "gh runs an alias", "gh", "gh"),
		option("ARG-012f", "aws starts what prints credentials", "aws", "aws", "script"),
		reading(option("ARG-013", "date, diff, head and their like print a file", "date", "date", "diff")),
		reading(option("ARG-013b", "file prints the files that it has names and rules from", "file", "file")),
		option("ARG-013c", "xxd writes what it reads", "xxd", "xxd"),
		reading(option("ARG-013d", "column and its like print a file", "column", "column")),
		option("ARG-013e", "tree writes a list", "tree", "tree"),
		reading(option("ARG-013f", "jq reads what is no document", "jq", "jq")),
		option("ARG-013g", "yq writes in place", "yq", "yq"),
	}
}

// working adds commands that must work, where a name on the path may be a shim
// that does not.
func working(r Row, lines ...string) Row {
	r.Needs = append(r.Needs, lines...)
	return r
}
