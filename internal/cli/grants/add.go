package grants

import (
	"errors"
	"fmt"
	"net/textproto"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/credentials"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// grantFlags are the flags of grant add.
type grantFlags struct {
	source, header, expires  string
	hosts, options           []string
	repositories, permission []string
	ttl                      time.Duration
	replace                  bool
	grant                    credentials.Grant
}

func newGrantAdd(a *app) *cobra.Command {
	var f grantFlags
	c := &cobra.Command{
		Use:   "add NAME --source KIND:WHERE --host HOST",
		Short: "Grant runs a credential for some hosts",
		Long: `Say where a secret is and where it may go. SOURCE is env:NAME, file:PATH,
command:PROGRAM ARGUMENT…, vault:PATH#FIELD or github-app. For known
services, such as api.github.com, header and variables need not be given.`,
		Example: `  holdfast grant add github --source 'command:gh auth token' --host api.github.com
  holdfast grant add claude --source env:ANTHROPIC_API_KEY --host api.anthropic.com --expires 8h
  holdfast grant add ci --source vault:secret/data/ci#token --host api.example.org --uses 100`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.addGrant(args[0], f) },
	}
	set := c.Flags()
	set.StringVar(&f.source, "source", "", "`KIND:WHERE` the secret is")
	set.StringArrayVar(&f.hosts, "host", nil, "`HOST` or HOST:PORT that it may go to; list flags may be repeated")
	set.StringArrayVar(&f.grant.Paths, "path", nil, "`PATH` of requests that may carry it, such as /repos/acme/**")
	set.StringVar(&f.header, "header", "", "`HEADER` that carries it, such as 'Authorization: Bearer {}'")
	set.BoolVar(&f.grant.Always, "always", false, "set the header on every request, without a placeholder")
	set.StringVar(&f.grant.Sign, "sign", "", "`HOW` requests are signed instead: aws-sigv4")
	set.StringArrayVar(&f.grant.Env, "env", nil, "`NAME` of a variable inside that holds the placeholder")
	set.StringVar(&f.grant.Shape, "shape", "", "`TEXT` that the placeholder begins with, such as ghp_")
	set.DurationVar(&f.ttl, "ttl", 15*time.Minute, "`DURATION` of a lease")
	set.Int64Var(&f.grant.Uses, "uses", 0, "`N` requests in all runs together (default any number)")
	set.StringVar(&f.expires, "expires", "", "`WHEN` the grant ends: 8h, 30d or a date (default never)")
	set.StringArrayVar(&f.options, "option", nil, "`KEY=VALUE` of the source: address, namespace, token-file, app-id, …")
	set.StringArrayVar(&f.repositories, "repo", nil, "`REPOSITORY` of a github-app token, without the owner")
	set.StringArrayVar(&f.permission, "permission", nil, "`NAME=LEVEL` of a github-app token, such as contents=read")
	set.BoolVar(&f.replace, "replace", false, "replace an existing grant of this name")
	return c
}

func (a *app) addGrant(name string, f grantFlags) error {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return err
	}
	g := f.grant
	g.Name, g.TTL = name, text.Span(f.ttl)
	if g.Source, err = f.sourceOf(host); err != nil {
		return command.Usage(err, "for example --source env:GITHUB_TOKEN; see 'holdfast grant add --help'")
	}
	for _, text := range f.hosts {
		h, err := policy.ParseHostPort(text)
		if err != nil {
			return command.Usage(err, "for example --host api.github.com")
		}
		g.Hosts = append(g.Hosts, h.Host+":"+strconv.Itoa(h.Port))
	}
	if len(g.Hosts) == 0 {
		return command.Usage(errors.New("no host given that the secret may go to"), "for example --host api.github.com")
	}
	if f.header != "" {
		name, format, ok := strings.Cut(f.header, ":")
		if !ok {
			return command.Usage(fmt.Errorf("--header %q has no colon", f.header), "for example --header 'Authorization: Bearer {}'")
		}
		g.Header, g.Format = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(format)
	}
	if f.expires != "" {
		if g.Expires, err = grantEnd(f.expires, time.Now()); err != nil {
			return command.Usage(err, "for example --expires 8h, --expires 30d or --expires 2027-01-31")
		}
	}
	g.Complete()
	if g, err = grantStore(host).Add(g, f.replace); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s: %s, to %s", g.Name, text.Line(sourceText(g.Source)), text.Line(strings.Join(g.Hosts, ", ")))
	switch {
	case g.Sign != "":
		fmt.Fprintf(a.Stdout, ", signed with %s\n", g.Sign)
	case len(g.Env) > 0:
		fmt.Fprintf(a.Stdout, ", in %s; inside, a placeholder in %s\n", g.Header, strings.Join(g.Env, ", "))
	default:
		fmt.Fprintf(a.Stdout, ", always in %s\n", g.Header)
	}
	fmt.Fprintf(a.Stdout, "see whether it works with: holdfast grant test %s\n", g.Name)
	return nil
}

// sourceOf reads --source, with the flags that belong to it.
func (f grantFlags) sourceOf(host policy.Host) (credentials.Source, error) {
	kind, where, _ := strings.Cut(f.source, ":")
	s := credentials.Source{Kind: kind, Options: map[string]string{}}
	for _, text := range f.options {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" {
			return s, fmt.Errorf("--option %q is not KEY=VALUE", text)
		}
		if strings.HasSuffix(key, "-file") {
			value = absolute(value, host)
		}
		s.Options[key] = value
	}
	if len(f.repositories)+len(f.permission) > 0 && kind != "github-app" {
		return s, errors.New("--repo and --permission are for --source github-app")
	}
	switch kind {
	case "":
		return s, errors.New("no --source given: it says where the secret is")
	case "env":
		s.Value = where
	case "file":
		s.Value = absolute(where, host)
	case "command":
		if strings.ContainsAny(where, `'"\$|&;<>`+"`") {
			return s, errors.New("the command is not run by a shell, so that quotes, variables and pipes have no effect; put it into a script and name the script")
		}
		s.Argv = strings.Fields(where)
	case "vault":
		path, field, _ := strings.Cut(where, "#")
		if s.Value = path; field != "" {
			s.Options["field"] = field
		}
	case "github-app":
		s.Options["repositories"], s.Options["permissions"] = strings.Join(f.repositories, ","), strings.Join(f.permission, ",")
	default:
		return s, fmt.Errorf("--source %q: there is no kind %q; the kinds are env, file, command, vault and github-app", f.source, kind)
	}
	return s, nil
}

// absolute is a path as the user means it, also behind a colon, where no shell
// expands a tilde.
func absolute(path string, host policy.Host) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(host.Home, rest)
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(host.Dir, path)
}

// grantEnd is when a grant ends: after a duration, with days too, or at a date.
func grantEnd(text string, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02", text, time.Local)
	}
	if err != nil {
		var d time.Duration
		if days, ok := strings.CutSuffix(text, "d"); ok {
			var n int
			n, err = strconv.Atoi(days)
			d = time.Duration(min(n, 36500)) * 24 * time.Hour
		} else {
			d, err = time.ParseDuration(text)
		}
		at = now.Add(d)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("--expires %q is neither a duration nor a date", text)
	}
	if !at.After(now) {
		return time.Time{}, fmt.Errorf("--expires %q is in the past", text)
	}
	return at.UTC().Truncate(time.Second), nil
}
