package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// settingsFile is a JSON file of the program's in which the object at key holds
// variables. The program sets them for itself, so they count before the caller's, and
// those of a later file before those of an earlier one.
type settingsFile struct {
	path   string // in the home, or below /etc; with ./ before it in the project, whose file chooses nothing
	key    string
	helper string // key of a command for a credential, which is not executed; "" for none
	origin Origin
}

// setting is one of those variables.
type setting struct {
	value string
	file  string // on the host; "" if the value is not a text of a file
	key   string // in the file, with its name
}

func (d *presetDecoder) settingsFile(n *yaml.Node) {
	const label = "an entry of settings"
	s := settingsFile{origin: d.origin(n)}
	d.mapping(label, n, []field{
		d.textField(label, "file", &s.path, func(text string) (string, error) {
			if rest, ok := strings.CutPrefix(text, "./"); ok {
				_, err := homePath("~/" + rest)
				return text, err
			}
			return homeOrEtc(text)
		}),
		d.textField(label, "key", &s.key, keyPath),
		d.textField(label, "helper", &s.helper, keyPath),
	})
	if len(d.errs) == 0 && (s.path == "" || s.key == "") {
		d.fail(n, "for example {file: ~/.agent/settings.json, key: env}", "%s needs file and key", label)
	}
	d.preset.settings = append(d.preset.settings, s)
}

// readSettings reads the variables that the program sets for itself. A file that
// cannot be read has none, and the run says why.
func (a *agentPlan) readSettings() {
	a.settings = map[string]setting{}
	for _, s := range a.preset.settings {
		if strings.HasPrefix(s.path, "./") {
			continue
		}
		path := a.hostPath(s.path)
		data, err := readPolicy(path, a.host.UID, false)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.missing = append(a.missing, a.preset.Title+": its settings are not read: "+withHint(err))
		}
		if err != nil {
			continue
		}
		if _, err := valueIn(data, s.helper); s.helper != "" && err == nil {
			a.other = fmt.Sprintf("%s in %s is not executed, but what it prints can be lent; ", s.helper, printable(path))
		}
		value, err := valueIn(data, s.key)
		clear(data)
		object, ok := value.(map[string]any)
		if err != nil || !ok {
			continue
		}
		a.obeyed = append(a.obeyed, obeyed{named{path, s.origin}, ""})
		for name, value := range object {
			switch v := value.(type) {
			case string:
				a.settings[name] = setting{v, path, s.key + "." + name}
			case json.Number, bool:
				a.settings[name] = setting{value: fmt.Sprint(v)}
			}
		}
	}
	for _, o := range a.preset.credentials {
		if o.Source.Kind == awsKeys && a.wanted(&o) && a.lookup("AWS_REGION") == "" && a.lookup("AWS_DEFAULT_REGION") == "" {
			a.settings["AWS_REGION"] = setting{value: a.awsSection(a.awsFiles()[1], a.awsProfile())["region"]}
		}
	}
	a.readProjectSettings()
}

// readProjectSettings says which credential the project's settings ask for. Whoever
// writes them does not choose it.
func (a *agentPlan) readProjectSettings() {
	for _, s := range a.preset.settings {
		if !strings.HasPrefix(s.path, "./") {
			continue
		}
		data, err := readPolicy(filepath.Join(a.dir, s.path), a.host.UID, true)
		if err != nil {
			continue
		}
		var said []string
		for _, c := range a.preset.credentials {
			value, err := valueIn(data, s.key+"."+c.when)
			if c.when == "" || err != nil || !switchedOn(fmt.Sprint(value)) || a.wanted(&c) || slices.Contains(said, c.when) {
				continue
			}
			said = append(said, c.when)
			a.missing = append(a.missing, fmt.Sprintf("%s: the project's %s sets %s, which chooses no credential, for the project is not you: export %s=1", a.preset.Title, s.path[2:], c.when, c.when))
		}
	}
}

// withHint is an error with what to type.
func withHint(err error) string {
	var e *Error
	if errors.As(err, &e) && e.hint != "" {
		return err.Error() + "; " + e.hint
	}
	return err.Error()
}

// filesObeyed are the files of the host that decided something; none without a preset.
func (a *agentPlan) filesObeyed() []obeyed {
	if a == nil {
		return nil
	}
	return a.obeyed
}

// find returns a variable as the program will see it.
func (a *agentPlan) find(name string) (value string, found bool) {
	if s, ok := a.settings[name]; ok {
		return s.value, true
	}
	return a.host.find(name)
}

// lookup is find for a variable that means nothing when it is empty.
func (a *agentPlan) lookup(name string) string {
	value, _ := a.find(name)
	return strings.TrimSpace(value)
}

// wanted reports whether the variable that switches a credential on is set to what
// programs take for yes.
func (a *agentPlan) wanted(o *offered) bool {
	return o.when == "" || switchedOn(a.lookup(o.when))
}

func switchedOn(value string) bool {
	return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(value))
}

// hostTemplate is a host of a preset in which ${NAME|OTHER|text} stands for the first of
// the caller's variables that is set, or the text, which is in small letters.
type hostTemplate string

func parseHostTemplate(text string) (hostTemplate, error) {
	before, rest, found := strings.Cut(text, "${")
	words, after, closed := strings.Cut(rest, "}")
	if found && (!closed || words == "") {
		return "", fmt.Errorf("%q has no variable such as ${NAME|OTHER|text}", printable(text))
	}
	sample := text
	if found {
		sample = before + "x" + after
	}
	_, err := ParseHostPort(sample)
	return hostTemplate(text), err
}

// fillHost fills a host in; "" if no variable of it is set, or to what cannot be a part
// of a host's name.
func (a *agentPlan) fillHost(t hostTemplate) string {
	before, rest, found := strings.Cut(string(t), "${")
	if !found {
		return before
	}
	words, after, _ := strings.Cut(rest, "}")
	for word := range strings.SplitSeq(words, "|") {
		value := word
		if word == strings.ToUpper(word) {
			value = strings.ToLower(a.lookup(word))
		}
		if value != "" && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" {
			return before + value + after
		}
	}
	return ""
}

// hostsOf are the hosts of a credential with the caller's variables filled in.
func (a *agentPlan) hostsOf(o *offered) []HostPort {
	hosts := slices.Clone(o.Hosts)
	for _, t := range o.hosts {
		h, err := ParseHostPort(a.fillHost(t))
		if err == nil && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
