package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/cli/runs"
	"holdfast.dev/holdfast/internal/cli/runs/summary"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// MCP makes the verb holdfast mcp.
func MCP(world *command.App) *cobra.Command {
	a := &app{world}
	c := &cobra.Command{
		Use:     "mcp",
		Short:   "Run MCP servers in a boundary of their own",
		Example: "  holdfast mcp run --policy ~/.config/holdfast/mcp-files.yaml -- mcp-server-files ~/data",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newMCPRunCommand(a))
	return c
}

func newMCPRunCommand(a *app) *cobra.Command {
	var flags plans.Flags
	var verbose bool
	c := &cobra.Command{
		Use:   "run --policy FILE [flags] [--] SERVER [ARG...]",
		Short: "Run an MCP server that speaks over its standard streams, inside the boundary",
		Long: `Run SERVER, an MCP server of the stdio transport, inside a boundary of its own,
for an agent that runs outside: name this command in the agent's settings in
place of the server. It sees what --policy and the flags allow and nothing of your
projects: without --workspace its working directory is empty and read-only. Each
tool call is recorded ('holdfast log show'). When the agent exits, the server is
ended. The exit status is the server's.`,
		Example: `  holdfast mcp run --policy ~/.config/holdfast/mcp-files.yaml -- mcp-server-files ~/data
  holdfast mcp run --policy mcp.yaml --ro ~/data -- node server.js
  claude mcp add files -- holdfast mcp run --policy ~/mcp.yaml -- mcp-server-files ~/data`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return command.Usage(errors.New("no server given"), "type 'holdfast mcp run --policy FILE -- SERVER'")
			case flags.Policy == "":
				return command.Usage(errors.New("no policy given: a policy must say what the server may see"),
					"write a file with the line 'version: 1', which shows the server only the system, and pass it with --policy")
			}
			return stdioServer(args[0])
		},
		RunE: func(_ *cobra.Command, args []string) error { return a.serveMCP(&flags, args, verbose) },
	}
	c.Flags().SetInterspersed(false)
	flags.Bind(c)
	plans.Complete(c)
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what the boundary is made of")
	return c
}

// stdioServer refuses the address of a server where a program is wanted.
func stdioServer(name string) error {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return nil
	}
	host, _, _ := strings.Cut(rest, "/")
	return command.Usage(fmt.Errorf("%s is an address: 'holdfast mcp run' starts servers that speak over their standard streams, not servers reached over %s", text.Safe(name), text.Safe(strings.ToUpper(scheme))),
		"name the address in the agent's settings, and let the agent reach it: holdfast run --allow "+text.Safe(host)+" -- AGENT")

}

// serveMCP runs a server to its end.
func (a *app) serveMCP(flags *plans.Flags, argv []string, verbose bool) error {
	options, err := flags.Options(a.App)
	if err != nil {
		return err
	}
	if options.Workspace == "" {
		if options.Workspace, err = noWorkspace(a); err != nil {
			return err
		}
		options.Settings = append(options.Settings, policy.Setting{Flag: "mcp run", Key: "workspace.readonly", Value: "."})
	}
	t, err := runs.New(a.App, options, argv)
	if err != nil {
		return err
	}
	errs := &errorLines{to: a.Stderr}
	t.Streams = run.Streams{In: a.Stdin, Out: a.Stdout, Err: errs}
	t.Messages = &run.Messages{}
	if in, ok := a.Stdin.(*os.File); ok {
		t.Messages.Hungup = func() bool { return sys.Hungup(in) }
	}
	// If an agent no longer reads, that is an error of a write here, and does not end
	// this process: the server must be ended in order.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	result, err := runs.Run(a.App, t)
	errs.flush()
	summary.Write(a.App, nil, t.Plan, result, verbose, err == nil)
	if n := result.Messages.Dropped; n > 0 {
		a.Note(command.Yellow, "warning", "%d lines or messages of the server were not passed on; the first was: %s", n, text.Line(result.Messages.First))
	}
	if err != nil {
		return err
	}
	if status := result.Exit.Status(); status != 0 {
		return command.Exit(status)
	}
	return nil
}

// noWorkspace is the working directory of servers that were given none: an empty
// one, which is read-only inside, so that all of them can share it.
func noWorkspace(a *app) (string, error) {
	cache := a.Lookup("XDG_CACHE_HOME")
	if !filepath.IsAbs(cache) {
		cache = filepath.Join(a.Lookup("HOME"), ".cache")
	}
	if !filepath.IsAbs(cache) {
		return "", command.Usage(errors.New("an empty directory for the server cannot be made: HOME is not set"), "set HOME, or name a directory with --workspace")
	}
	dir := filepath.Join(cache, "holdfast", "no-workspace")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making an empty directory for the server: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("making an empty directory for the server: %w", err)
	}
	if len(entries) > 0 {
		return "", command.Usage(fmt.Errorf("%s must be empty, and is not", dir), "look at what is in it, and remove it; or name a directory with --workspace")
	}
	return dir, nil
}

// errorLines passes on the standard error of a program, with what a terminal would obey
// made visible.
type errorLines struct {
	to io.Writer

	mu   sync.Mutex // guards what follows
	rest []byte     // of a line that has no end yet
}

// longestLine is how many bytes of a line wait for its end.
const longestLine = 8 << 10

func (e *errorLines) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rest = append(e.rest, b...)
	for {
		end := bytes.IndexByte(e.rest, '\n')
		if end < 0 && len(e.rest) > longestLine {
			end = longestLine
		}
		if end < 0 {
			return len(b), nil
		}
		line := e.rest[:end]
		e.rest = bytes.TrimPrefix(e.rest[end:], []byte("\n"))
		if _, err := io.WriteString(e.to, text.Line(string(bytes.TrimSuffix(line, []byte("\r"))))+"\n"); err != nil {
			return 0, fmt.Errorf("passing on the server's errors: %w", err)
		}
	}
}

// flush passes on a last line that has no end.
func (e *errorLines) flush() {
	e.mu.Lock()
	rest := len(e.rest) > 0
	e.mu.Unlock()
	if rest {
		e.Write([]byte("\n")) // an agent that does not read it has gone
	}
}
