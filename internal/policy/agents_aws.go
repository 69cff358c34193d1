package policy

import (
	"bufio"
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
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
	given, why := a.filesGiven(o.Origin, slices.Concat(awsTokenVariables, awsFileVariables[:])...)
	if why != "" {
		return why
	}
	profile, files := a.awsProfile(), a.awsFiles()
	keys, config := a.awsSection(files[0], profile), a.awsSection(files[1], profile)
	role := keys["role_arn"]+config["role_arn"] != "" // requests are signed as it, and not with the keys of the section
	for i, section := range []map[string]string{keys, config} {
		if !role && section["aws_access_key_id"] != "" && section["aws_secret_access_key"] != "" {
			o.Source = CredentialSource{Kind: "file", Value: files[i], Options: options("profile", profile)}
			return ""
		}
	}
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			given = append(given, obeyed{named{file, o.Origin}, ""})
		}
	}
	a.obeyed = append(a.obeyed, given...) // by them the source may execute something on the host
	chosen, found := a.lookup("AWS_PROFILE") != "", len(keys)+len(config) > 0
	if chosen && !found {
		return "the AWS profile " + printable(profile) + " is not in ~/.aws/config or ~/.aws/credentials"
	}
	if a.hasProgram("aws") {
		o.Source = CredentialSource{Kind: "command", Argv: []string{"aws", "configure", "export-credentials", "--format", "process"}}
		if chosen { // else the program also finds what needs no profile, such as the role of a machine
			o.Source.Argv = append(o.Source.Argv, "--profile", profile)
		}
		return ""
	}
	if argv, err := splitWords(config["credential_process"]); err == nil && !role {
		o.Source = CredentialSource{Kind: "command", Argv: argv}
		return ""
	}
	what := "there are no keys of AWS, and a role of this machine"
	if found {
		what = "the AWS profile " + printable(profile)
	}
	return what + " needs the program aws (AWS CLI, version 2), which is not installed"
}

func (a *agentPlan) awsProfile() string { return cmp.Or(a.lookup("AWS_PROFILE"), "default") }

// awsFileVariables name the files of keys and of settings.
var awsFileVariables = [2]string{"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}

// awsTokenVariables name the files of tokens for which the program aws is given keys.
var awsTokenVariables = []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"}

// filesGiven are the files that variables name: those of the program's settings, and
// those of the caller's environment, which a command on the host gets. why says what is
// wrong with one; "" for nothing.
func (a *agentPlan) filesGiven(at Origin, variables ...string) (files []obeyed, why string) {
	for _, name := range variables {
		for _, file := range []string{a.lookup(name), a.host.lookup(name)} {
			given := obeyed{named{file, at}, name}
			switch {
			case file == "" || slices.Contains(files, given):
			case !wholePath(file):
				return nil, name + " is not an absolute path without .., and what runs inside could choose the file; export it anew with one outside of the workspace"
			default:
				files = append(files, given)
			}
		}
	}
	return files, ""
}

// wholePath reports whether a path names the same file wherever it is used, and however
// its parts are joined.
func wholePath(path string) bool { return filepath.IsAbs(path) && pathText(path) == nil }

// awsFiles are the files of keys and of settings; "" for one that is named by no whole
// path: what runs inside could have put it where it is looked for.
func (a *agentPlan) awsFiles() (files [2]string) {
	for i, name := range awsFileVariables {
		files[i] = cmp.Or(a.lookup(name), filepath.Join(a.host.Home, ".aws", [2]string{"credentials", "config"}[i]))
		if !wholePath(files[i]) {
			files[i] = ""
		}
	}
	return files
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
