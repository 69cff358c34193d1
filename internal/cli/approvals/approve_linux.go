// Package approvals is holdfast approve: what waits for an answer, on the whole screen
// or by verbs, and the answers of a person. [Command] is the way in. It carries
// answers to the run that asked (internal/consent), which decides what they cover.
package approvals

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast approve.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var untilEmpty bool
	via := "terminal"
	c := &cobra.Command{
		Use:   "approve",
		Short: "Answer the requests of runs: allow or deny what a rule of consent holds back",
		Long: `Show the requests that wait in all your running sessions, with exactly what would
happen and what the run did before, and answer them. A request without an answer in
time is denied. An approval covers the same action once, for a time, or until the run
ends, and nothing else. In scripts use the subcommands: ID is the beginning of a
request's name, as 'holdfast approve list' shows it.`,
		Example: `  holdfast approve
  holdfast approve list
  holdfast approve allow k7m2 --for 10m --reason "the release of today"
  holdfast approve deny k7m2 --reason "not on a Friday"`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.approveScreen(c, via, untilEmpty) },
	}
	c.Flags().BoolVar(&untilEmpty, "until-empty", false, "exit when nothing waits any more, for pop-up windows")
	c.Flags().StringVar(&via, "via", via, "how the answers are given, for the record")
	c.Flags().MarkHidden("via")
	c.AddCommand(newApproveList(a), newApproveAllow(a), newApproveDeny(a), newApproveGrants(a), newApproveRevoke(a), newApproveWatch(a))
	return c
}

// approver is the person who answers: the places, the name and the key.
type approver struct {
	state string
	by    string
	via   string
	key   ed25519.PrivateKey // nil before it is needed
}

func (a *app) approver(via string) (*approver, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return nil, err
	}
	p := &approver{state: host.State, via: via, by: a.Lookup("USER")}
	if u, err := user.Current(); err == nil {
		p.by = u.Username
	}
	return p, nil
}

// sign completes an answer and signs it with the user's key, which is made if there is
// none.
func (p *approver) sign(n consent.Answer) (consent.Signed, error) {
	if p.key == nil {
		key, err := consent.ApproverKey(filepath.Join(p.state, "keys"))
		if err != nil {
			return consent.Signed{}, err
		}
		p.key = key
	}
	n.By, n.Via, n.At = p.by, p.via, time.Now()
	n.Reason = strings.ToValidUTF8(n.Reason, "?")
	return consent.Sign(n, p.key), nil
}

// answer gives an answer to the run that asked.
func (p *approver) answer(ctx context.Context, n consent.Answer) error {
	s, err := p.sign(n)
	if err != nil {
		return err
	}
	return consent.AnswerRequest(ctx, p.state, n.Session, s)
}

// revoke takes a grant back.
func (p *approver) revoke(ctx context.Context, session, grant, reason string) error {
	s, err := p.sign(consent.Answer{Session: session, Grant: grant, Reason: reason})
	if err != nil {
		return err
	}
	return consent.RevokeGrant(ctx, p.state, session, s)
}

// onTerminal reports whether there is a terminal that can be drawn on.
func (a *app) onTerminal() (in, out *os.File, err error) {
	in, inOK := a.Stdin.(*os.File)
	out, outOK := a.Stdout.(*os.File)
	if !inOK || !outOK || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		err = errors.New("there is no terminal to show requests on")
	} else if t := a.Lookup("TERM"); t == "" || t == "dumb" {
		err = fmt.Errorf("the terminal (TERM=%s) cannot show a full screen", text.Line(t))
	}
	if err != nil {
		return nil, nil, command.Usage(err, "use 'holdfast approve list', then 'holdfast approve allow ID' or 'holdfast approve deny ID'")
	}
	return in, out, nil
}
