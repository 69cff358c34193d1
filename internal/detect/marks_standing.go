package detect

import (
	"slices"
	"strings"
)

// Place is what paths are judged against.
type Place struct {
	Home      string // of the user whose session it is; "" when it is not known
	Workspace string
	Fixed     []string // what the view shows and nothing inside can write; absolute
	Writable  []string // what the policy lets be written besides the workspace; absolute
}

// excusingMarks are the marks that a program gets by its name and that make a rule
// say less about it.
const excusingMarks = client | browser | debugger | agent

// How far the name of a program is trusted, by where its file is.
const (
	fixed     = iota // nothing inside can have made it
	installed        // where installers put a user's programs: an alert is low, not none
	anybodys         // its writer chose the name, which excuses nothing
)

func (p *Place) nameTrust(path string) int {
	if path == "" || path[0] != '/' || isInMemory(path) {
		return anybodys
	}
	longest, writable, temp := 0, false, false
	look := func(dir string, w, t bool) {
		if len(dir) > longest && within(path, dir) {
			longest, writable, temp = len(dir), w, t
		}
	}
	for _, dir := range [...]string{"/tmp", "/var/tmp", "/dev", "/proc", "/run", "/var/run", "/var/scratch"} {
		look(dir, true, true)
	}
	look(homeOf(path), true, false)
	if p.Home != "/" && !within(p.Home, "/usr") { // like that of daemon
		look(p.Home, true, false)
	}
	look(p.Workspace, true, false)
	for _, dir := range p.Fixed {
		look(dir, false, false)
	}
	for _, dir := range p.Writable {
		look(dir, true, false)
	}
	switch {
	case !writable:
		return fixed
	case !temp && isInstalled(path[longest:]):
		return installed
	}
	return anybodys
}

// isInMemory reports whether the file of a program is not on disk.
func isInMemory(path string) bool {
	return strings.HasPrefix(path, "/memfd:") || strings.HasSuffix(path, " (deleted)")
}

// within reports whether path is dir or below it, by the requested text: unlike
// paths.Within it resolves no dots, so that what follows dir is
// path[len(dir):], and it is cheap enough for every event.
func within(path, dir string) bool {
	return dir != "" && strings.HasPrefix(path, dir) && (len(path) == len(dir) || dir[len(dir)-1] == '/' || path[len(dir)] == '/')
}

func withinAny(path string, dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(path, dir) })
}

// homeOf is the home directory that contains a path, "" for none.
func homeOf(path string) string {
	for _, above := range [...]string{"/home/", "/Users/"} {
		if rest, ok := strings.CutPrefix(path, above); ok {
			who, _, _ := strings.Cut(rest, "/")
			return path[:len(above)+len(who)]
		}
	}
	if within(path, "/root") {
		return "/root"
	}
	return ""
}

// installDirs are where installers put programs, below a home or the workspace.
var installDirs = []string{
	".local/bin/", ".local/share/", ".local/lib/", ".local/pipx/", ".nvm/", ".volta/", ".fnm/", ".nodenv/", ".asdf/", ".mise/", ".n/", ".npm-global/",
	".bun/", ".deno/", ".pyenv/", ".rye/", ".conda/", "miniconda3/", "miniforge3/", "anaconda3/", "mambaforge/", "micromamba/", ".rbenv/", ".rvm/",
	".cargo/bin/", ".rustup/", "go/bin/", "go/pkg/mod/golang.org/", "sdk/", ".sdkman/", ".jenv/", ".gradle/jdks/", ".nix-profile/", ".linuxbrew/",
	".cache/ms-playwright/", ".cache/puppeteer/", ".cache/Cypress/", ".cache/selenium/", ".cache/electron/", ".vscode-server/", ".cursor-server/", ".claude/", ".codex/",
}

// bundledBrowsers are directories of packages that bring a browser along.
var bundledBrowsers = []string{"node_modules/electron/dist/", "/.local-browsers/", "/.local-chromium/"}

// isInstalled reports whether a path below a home or the workspace is where
// installers put programs.
func isInstalled(rest string) bool {
	rest = strings.TrimPrefix(rest, "/")
	return slices.ContainsFunc(installDirs, func(dir string) bool { return strings.HasPrefix(rest, dir) }) ||
		slices.ContainsFunc(bundledBrowsers, func(dir string) bool { return strings.Contains(rest, dir) })
}
