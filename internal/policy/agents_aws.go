package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// awsKeys is the kind of a preset's source that finds keys as the programs of AWS do:
// in variables, else for the profile.
const awsKeys = "aws"

// awsSource finds out where the keys of AWS are, and makes that the source of o. why is
// empty if there are any. With AWS_PROFILE the variables do not count (AWS SDK for
// JavaScript 3, fromEnv).
func (a *agentPlan) awsSource(o *offered) (why string) {
	if id := a.settings[awsVariables[0]]; id.value != "" && a.lookup("AWS_PROFILE") == "" {
		o.Source = CredentialSource{Kind: "file", Value: id.file, Options: options("key", id.key)}
		return ""
	}
	if a.lookup(awsVariables[0]) != "" && a.lookup("AWS_PROFILE") == "" {
		o.Source = CredentialSource{Kind: "env", Value: awsVariables[0]}
		return ""
	}
	profile := a.awsProfile()
	for _, file := range a.awsFiles() {
		section := a.awsSection(file, profile)
		if section["aws_access_key_id"] != "" && section["aws_secret_access_key"] != "" {
			o.Source = CredentialSource{Kind: "file", Value: file, Options: options("profile", profile)}
			return ""
		}
	}
	for _, file := range a.awsFiles() { // by which the source may execute something on the host
		if _, err := os.Lstat(file); err == nil {
			a.obeyed = append(a.obeyed, named{file, o.Origin})
		}
	}
	section := a.awsSection(a.awsFiles()[1], profile)
	if len(section) == 0 {
		return "the AWS profile " + printable(profile) + " is not in ~/.aws/config or ~/.aws/credentials"
	}
	if a.hasProgram("aws") {
		o.Source = CredentialSource{Kind: "command", Argv: []string{"aws", "configure", "export-credentials", "--format", "process", "--profile", profile}}
		return ""
	}
	if argv, err := splitWords(section["credential_process"]); err == nil {
		o.Source = CredentialSource{Kind: "command", Argv: argv}
		return ""
	}
	return "the AWS profile " + printable(profile) + " needs the program aws (AWS CLI, version 2), which is not installed"
}

func (a *agentPlan) awsProfile() string { return cmp.Or(a.lookup("AWS_PROFILE"), "default") }

// awsFiles are the files of keys and of settings.
func (a *agentPlan) awsFiles() [2]string {
	home := filepath.Join(a.host.Home, ".aws")
	return [2]string{
		cmp.Or(a.lookup("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, "credentials")),
		cmp.Or(a.lookup("AWS_CONFIG_FILE"), filepath.Join(home, "config")),
	}
}

// awsSection reads the settings of a profile; none if the file cannot be read.
func (a *agentPlan) awsSection(file, profile string) map[string]string {
	data, err := readPolicy(file, a.host.UID, false)
	if err != nil {
		return nil
	}
	defer clear(data)
	return AWSProfile(data, profile)
}

// AWSProfile takes the settings of a profile out of a file of the AWS programs: a
// section [NAME] or [profile NAME] with lines of key = value. Indented lines belong to
// the value above them (AWS SDKs and Tools Reference Guide, "Shared config and
// credentials files").
func AWSProfile(data []byte, profile string) map[string]string {
	out := map[string]string{}
	inside := false
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		line := s.Text()
		if name, ok := strings.CutPrefix(line, "["); ok {
			name, _, _ = strings.Cut(name, "]")
			words := strings.Fields(name)
			inside = len(words) > 0 && words[len(words)-1] == profile && (len(words) == 1 || len(words) == 2 && words[0] == "profile")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if inside && ok && strings.TrimLeft(key, " \t#;") == key {
			out[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
		}
	}
	return out
}

// hasProgram reports whether the caller's PATH has a program.
func (a *agentPlan) hasProgram(name string) bool {
	for dir := range strings.SplitSeq(a.host.lookup("PATH"), ":") {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}
