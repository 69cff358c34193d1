package policy

import "strings"

// kind is the shape of a key's value.
type kind int

const (
	section   kind = iota // a mapping of further keys
	version               // the number 1
	word                  // one of key.words
	anchors               // a list of places for the head of the log
	sinks                 // a list of places for alerts
	toolRules             // a list of rules for tools
	gateRules             // a list of rules of consent
	notifiers             // a list of ways to tell a human
	programs              // a list of programs: names, paths and patterns
	patience              // a duration with a unit; 0s is the least
	source                // a profile or a file
	paths                 // a list of paths
	patterns              // a list of names or path patterns inside the workspace
	names                 // a list of variable names, NAME or PREFIX*
	vars                  // a mapping of variables to values
	hosts                 // a list of network destinations
	ports                 // a list of PORT or HOSTPORT:PORT
	services              // a list of PORT
	losses                // a list of guarantees
	secrets               // a list of credentials
	size                  // bytes with a unit, or none
	count                 // a whole number, or none
	cores                 // a number of processor cores, or none
	span                  // a duration with a unit, or none
)

// reach says what an untrusted project file may do with a key.
type reach int

const (
	never   reach = iota // any use widens
	clears               // only an empty list, which takes away
	adds                 // only entries, each of which takes away
	listed               // only entries that are in force already, unless all may be used, or an empty list
	subset               // only entries that are in force already, or an empty list
	lowers               // only a smaller value
	raises               // only a word that stands in key.words at or after the one in force
	ignored              // has no effect on what is allowed
)

// key is one key of a policy file. The table below is the only place that
// knows them: decoding, the JSON Schema and docs/policy.md all read it.
type key struct {
	name    string // dotted, as in "limits.memory"
	kind    kind
	words   []string // for kind word; for reach raises the weakest first
	project reach
	doc     string
	example string // YAML of the value
}

var keys = []key{
	{name: "version", kind: version, project: ignored, example: "1",
		doc: "Version of the format. Required; the only one is 1."},
	{name: "extends", kind: source, project: never, example: "local",
		doc: "What this file builds on: the profile `local`, `ci` or `production`, or another policy file, relative to this one. Entries of this file come on top. Without it a file builds on the profile of the run."},

	{name: "workspace", kind: section,
		doc: "The directory that the command works in; the only tree of the host that it may change unless `filesystem.write` names more."},
	{name: "workspace.mode", kind: word, words: []string{"direct", "review"}, project: raises, example: "review",
		doc: "`direct`: changes are made in the tree itself. `review`: the command works on a copy-on-write view, and what it changed waits for `holdfast review`; the tree itself is not changed by the run, but for what `filesystem.write` and `workspace.outputs` name. The flag is `--review`."},
	{name: "workspace.view", kind: word, words: []string{string(ViewAuto), string(ViewOverlay), string(ViewCopy)}, project: ignored, example: "copy",
		doc: "How mode `review` makes its view. `overlay`: a layer over the tree, at no cost at the start; the rename of a directory that was there before is refused with EXDEV, which `mv` and `npm` work around and `git mv` does not. `copy`: the tree is copied first, and everything works. `auto`: the layer, and the copy where the host cannot lay one, or where files that the command may change are of another group or user than it has first, as in a tree that a group shares: the kernel refuses to change them in a layer (EOVERFLOW)."},
	{name: "workspace.scratch", kind: word, words: []string{"off", "on"}, project: ignored, example: "on",
		doc: "`on`: a private directory on disk for what a build needs and nobody keeps, in `HOLDFAST_SCRATCH`. It is empty at the start, gone at the end, and counts against `limits.disk`. The flag is `--scratch`."},
	{name: "workspace.outputs", kind: paths, project: clears, example: "[dist]",
		doc: "Directories for results: writable on the host, at their place, also where the workspace is read-only. One that is missing is made, but not the directory it is in. What your host would execute or obey, and secrets, are protected, hidden and held back in them as in any workspace. `HOLDFAST_OUTPUT` is the first of them. The flag is `--output`."},
	{name: "workspace.readonly", kind: paths, project: adds, example: "[vendor]",
		doc: "Paths inside the workspace that the command may read and not change. `.` is the whole workspace; outputs are then named under `filesystem.write`."},
	{name: "workspace.protect", kind: patterns, project: adds, example: "[deploy.sh]",
		doc: "Names or patterns to protect besides the built-in list of files that the host executes later. They apply at any depth; with a leading slash at the top of the workspace only."},
	{name: "workspace.unprotect", kind: patterns, project: never, example: "[.vscode/settings.json]",
		doc: "Entries of the built-in list, or paths from the workspace, to leave writable. Whatever the command writes there may later be executed by the host."},
	{name: "workspace.hide", kind: patterns, project: adds, example: "[customers.csv]",
		doc: "Names or patterns of secrets that the command may not read, besides the built-in list (`.env`, private keys, Terraform state and the like, unless git tracks them). They apply at any depth; with a leading slash at the top of the workspace only."},
	{name: "workspace.show", kind: patterns, project: never, example: "[.env.test]",
		doc: "Names or patterns of that list that the command may read."},

	{name: "filesystem", kind: section,
		doc: "Host paths that are in view besides the system and the workspace. A path ending in `?` may be missing. The most specific path decides; of two entries for the same path the later source decides, and in one source the narrower."},
	{name: "filesystem.read", kind: paths, project: clearsNothing, example: "[~/datasets]",
		doc: "Paths that the command may read and execute."},
	{name: "filesystem.copy", kind: paths, project: clearsNothing, example: "[~/.cache/ccache]",
		doc: "Directories that the command may read, and seems to write: what it writes goes to a private layer that is dropped at the end. Made for caches."},
	{name: "filesystem.write", kind: paths, project: clears, example: "[~/out]",
		doc: "Paths whose contents the command may change on the host. Files in them are not protected as those of the workspace are."},

	{name: "network", kind: section,
		doc: "Without it nothing but loopback inside can be reached."},
	{name: "network.allow", kind: hosts, project: clears, example: "[packages.example.org, \"git.example.org:22/tcp\", {host: api.example.org, methods: [GET], paths: [/v1/items/**]}]",
		doc: allowDoc},
	{name: "network.host-ports", kind: services, project: clears, example: "[5432]",
		doc: "TCP services on the loopback of the host that are reached inside at 127.0.0.1 and the same port."},
	{name: "network.publish", kind: ports, project: clears, example: "[3000, \"8080:80\"]",
		doc: "TCP ports served inside that are shown on the host's loopback: `PORT`, or `HOSTPORT:PORT`."},

	{name: "environment", kind: section,
		doc: "The environment inside is built from this list. HOME, USER, LOGNAME, SHELL, PATH, PWD, TMPDIR and PYTHONDONTWRITEBYTECODE are set by Holdfast."},
	{name: "environment.pass", kind: names, project: subset, example: "[LANG, LC_*]",
		doc: "Variables of the caller that are handed in when set. `PREFIX*` stands for all that begin so, except those that look like a secret or that make programs execute something."},
	{name: "environment.set", kind: vars, project: never, example: "{CI: \"true\"}",
		doc: "Variables with their value in full; the way to hand in one whose name or value looks like a secret."},

	{name: "limits", kind: section,
		doc: "Upper bounds for everything inside together. `none` lifts one."},
	{name: "limits.memory", kind: size, project: lowers, example: "8GiB",
		doc: "Memory of all processes. A profile's default is lowered to what the machine has."},
	{name: "limits.processes", kind: count, project: lowers, example: "4096",
		doc: "Processes and threads."},
	{name: "limits.files", kind: count, project: lowers, example: "65536",
		doc: "Open files of one process."},
	{name: "limits.disk", kind: size, project: lowers, example: "10GiB",
		doc: "Private storage: the home inside, /tmp and /dev/shm together; and what the writable trees of one file system grow by, the workspace, its copy in mode `review` and the scratch directory among them."},
	{name: "limits.filesize", kind: size, project: lowers, example: "2GiB",
		doc: "Size that a file may grow to."},
	{name: "limits.cpus", kind: cores, project: lowers, example: "2.5",
		doc: "Processor cores; `none` means all."},
	{name: "limits.time", kind: span, project: lowers, example: "4h",
		doc: "Wall-clock time of the run."},

	{name: "tools", kind: section,
		doc: "What agents may call, as far as they ask. The boundary holds without these rules."},
	{name: "tools.deny", kind: toolRules, project: adds, example: "[WebFetch, {tool: Bash, when: 'arguments.command.contains(\"sudo\")', reason: there is no sudo here}]",
		doc: toolsDoc},

	{name: "record", kind: section,
		doc: "The record of the run, outside every view. What Holdfast itself decides is in it at every level."},
	{name: "record.level", kind: word, words: []string{string(RecordStandard), string(RecordFull)}, project: raises, example: "full",
		doc: "`standard`: what is executed, changed, connected to or refused. `full`: every open for reading too. The flag is `--record`. With `record` under `without` no system calls are recorded, whatever stands here."},
	{name: "record.anchor", kind: anchors, project: never, example: "[\"file:~/anchors/holdfast\", syslog, https://anchor.example.org/holdfast]",
		doc: anchorDoc},

	{name: "alerts", kind: section,
		doc: "What happens when a rule of detection finds something. Alerts are in the record in any case."},
	{name: "alerts.sinks", kind: sinks, project: never,
		example: "[{terminal: true, severity: high}, {webhook: https://hooks.example.org/holdfast, secret: ~/.config/holdfast/webhook.key}]",
		doc:     sinksDoc},
	{name: "alerts.rules", kind: paths, project: never, example: "[~/.config/holdfast/rules]",
		doc: "Files of rules, or directories of such files, besides the built-in rules. Of a directory the files `*.yaml` are read. They belong to you or root, are writable by nobody else, and may not be, hold or lie below anything that the command can write."},
	{name: "honeytokens", kind: word, words: []string{"off", "on"}, project: raises, example: "on",
		doc: "`on`: the private home inside holds credentials of the usual kinds that are worth nothing. Reading one is an alert, and sending one anywhere is refused and a critical one."},

	{name: "without", kind: losses, project: clears, example: "[landlock-scopes]",
		doc: "Guarantees whose loss is accepted where the host cannot keep them. Each is named at the start and in the summary of a run."},

	{name: "credentials", kind: secrets, project: clears,
		example: "[{name: github, source: {command: gh auth token}, hosts: [api.github.com], env: GITHUB_TOKEN}]",
		doc:     credentialsDoc},
	{name: "ask", kind: gateRules, project: adds, example: "[git-push, {set: new-hosts, attended: true}, {when: 'action == \"exec\" && program == \"terraform\" && verb == \"apply\"', reason: this changes what runs}]",
		doc: "What a human must decide before it happens: the action is held while he is asked, and denied where nobody answers in time. Where several rules are about an action, one under `deny` decides; then one that asks in any case. Rules about commands are for consent and the boundary is for security. The flag is `--ask`. " + gatesDoc +
			"| `attended` | `true`: asks only while somebody is there to answer (`holdfast approve` is open); else the boundary decides as it would without the rule |\n\n" + aboutDoc},
	{name: "deny", kind: gateRules, project: adds, example: "[publish, {when: 'action == \"connect\" && port == 25'}]",
		doc: "What is denied without asking, although the boundary would let it happen. The flag is `--deny`. " + gatesDoc + "\n" + aboutDoc},
	{name: "programs", kind: section,
		doc: "Which programs may be started inside. Off without `else`. " + programsDoc},
	{name: "programs.allow", kind: programs, project: listed, example: "[git, /usr/lib/git-core/*, node, npm, /usr/bin/make, ./scripts/*]",
		doc: programsAllowDoc},
	{name: "programs.else", kind: word, words: []string{programsOff, programsReport, programsRefuse}, project: raises, example: "report",
		doc: programsElseDoc},
	{name: "approvals", kind: section,
		doc: "How a human is asked."},
	{name: "approvals.timeout", kind: patience, project: lowers, example: "15m",
		doc: "How long an action is held for an answer; without one it is denied. `0s`: nobody is asked, and what rules under `ask` are about is denied at once."},
	{name: "approvals.notify", kind: notifiers, project: never, example: "[tmux, {webhook: https://hooks.example.org/approve, secret: ~/.config/holdfast/approve.key}]",
		doc: notifyDoc},
}

// allowDoc describes a destination in full.
const allowDoc = "Destinations that the command may reach, as `HOST`, `HOST:PORT`, `HOST:PORT/KIND` or a mapping:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `host` | a DNS name, `*.` and a name for all names below it (not that name itself), or an IP address |\n" +
	"| `ports` | list of ports; without it 443, and 80 where nothing else is said of the host |\n" +
	"| `kind` | `tls`: TLS for that name; `http`: HTTP in the clear; `tcp`: any bytes. Without it 443 is `tls`, 80 is `http`, all others are `tcp` |\n" +
	"| `methods` | methods of requests, such as `GET`; without it all |\n" +
	"| `paths` | paths of requests: `*` stands for part of one segment, `/**` at the end for everything below; without it all |\n" +
	"| `credential` | a name of `credentials`, or of a grant that you keep (`holdfast grant`), or a list of them, that may be used there |\n" +
	"| `internal` | `true`: the name may have an address that is not public |\n" +
	"| `inspect` | `true`: TLS is terminated and each request recorded; that is so in any case with `methods`, `paths` or `credential` |\n\n" +
	"Several entries may name one host: what any of them permits is permitted. A list that is empty is an error, for it could be read as all."

// credentialsDoc describes a credential in full.
const credentialsDoc = "Secrets that never enter the boundary. Inside there is a placeholder; on the way to the hosts of the credential it is replaced in one header. Each is a mapping:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `name` | how rules and records call it: letters, digits, `-` and `_` |\n" +
	"| `source` | where the secret comes from, see below |\n" +
	"| `hosts` | where it may go, as `HOST` (port 443) or `HOST:PORT`; no wildcards. Each must be in `network.allow` with kind `tls`. The hosts of rules that name it in `credential` are added |\n" +
	"| `paths` | of requests that may carry it, as in `network.allow`; without it all |\n" +
	"| `header` | the only header it may stand in, with `{}` for the secret; `Authorization: Bearer {}` without it |\n" +
	"| `env` | variable inside that holds the placeholder, or a list of them |\n" +
	"| `always` | `true`: the header is set on every request to the hosts, placeholder or not. That is the default without `env` |\n" +
	"| `sign` | `aws-sigv4`: requests are signed afresh instead. `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY` inside are placeholders; no `header`, `env`, `always` or `shape` then |\n" +
	"| `shape` | how the placeholder begins, for programs that check it; known for some hosts, such as `ghp_` for GitHub |\n" +
	"| `ttl` | how long a lease lasts; `15m` without it, and at most that in the profiles `ci` and `production` |\n" +
	"| `uses` | how many requests a lease is good for; without it any number |\n\n" +
	"A source is one of:\n\n" +
	"| source | where the secret is |\n| --- | --- |\n" +
	"| `{env: NAME}` | a variable of the caller |\n" +
	"| `{file: PATH}` | a file outside of all that is in view |\n" +
	"| `{command: TEXT}` or `{command: [PROGRAM, ARGUMENT, …]}` | what a program on the host prints. A text is split at spaces, with quotes, and no shell reads it |\n" +
	"| `{vault: {path, field, address, namespace, token-file}}` | HashiCorp Vault; what is left out is the caller's `VAULT_ADDR`, `VAULT_NAMESPACE` and `VAULT_TOKEN` or `~/.vault-token`. With `sign` a `path` of the AWS engine needs no `field` |\n" +
	"| `{github-app: {app-id, installation-id, key-file, repositories, permissions, api}}` | an installation token, made for the `repositories` (a list of names) and `permissions` (such as `{contents: read}`) alone |\n\n" +
	"A later source's credential takes the place of an earlier one of the same name."

const anchorDoc = "Where the signed head of the log is published besides Holdfast's own state, so that a log that was cut or written anew can be told: `file:PATH`, a file outside of all that is in view; `syslog`, the syslog daemon of the host; or a URL with `https` (`http` to loopback only) that the head is sent to by POST."

// sinksDoc describes a place for alerts in full.
const sinksDoc = "Places that alerts are sent to. Each is a mapping with one of the kinds:\n\n" +
	"| kind | where alerts go |\n| --- | --- |\n" +
	"| `terminal: true` | a line on the standard error of `holdfast run` |\n" +
	"| `file: PATH` | a JSON line each at the end of a file |\n" +
	"| `webhook: URL` | a JSON document each by POST |\n" +
	"| `syslog: local` or a URL | the daemon of the host; or `udp://HOST:PORT`, `tcp://HOST:PORT`, `tls://HOST:PORT`, `unix:///PATH` |\n" +
	"| `otlp: URL` | an OpenTelemetry collector, by HTTP |\n\n" +
	"and, besides that:\n\n" +
	"| key | meaning | for |\n| --- | --- | --- |\n" +
	"| `severity` | the least severity that is sent: `info`, `low`, `medium`, `high` or `critical`; without it `low`, and `medium` for `terminal` | all |\n" +
	"| `headers` | file with a header a line, as `Name: value`; the place for tokens | `webhook`, `otlp` |\n" +
	"| `secret` | file with the key of the signature (HMAC-SHA256) of each request; without it requests are not signed | `webhook` |\n" +
	"| `authority` | PEM file with certificate authorities that are trusted besides the system's | `webhook`, `otlp`, `syslog` with `tls` |\n" +
	"| `timeout` | of one attempt, from `100ms` to `1m`; without it `10s` | `webhook`, `otlp`, `syslog` |\n" +
	"| `insecure` | `true`: `http` to a host that is not loopback | `webhook`, `otlp` |\n\n" +
	"Files are outside of all that is in view. A later source's sink takes the place of an earlier one of the same kind and address."

// clearsNothing is never under a name that says why: an entry that makes a path
// readable can also be what makes a path below a writable one read-only, so
// that taking it away may widen.
const clearsNothing = never

// lookup finds a key by its dotted name.
func lookup(name string) (key, bool) {
	for _, k := range keys {
		if k.name == name {
			return k, true
		}
	}
	return key{}, false
}

// children are the names that may stand directly below a section; "" is the
// top of a file.
func children(parent string) []string {
	var out []string
	for _, k := range keys {
		rest, ok := strings.CutPrefix(k.name, parent+".")
		if parent == "" {
			rest, ok = k.name, true
		}
		if ok && !strings.Contains(rest, ".") {
			out = append(out, rest)
		}
	}
	return out
}
