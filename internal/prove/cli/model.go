package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/model"
)

func newModelCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "model",
		Short: "Serve a scripted model to try agents with",
		Long: `A scripted model answers agent programs in place of a provider's model, without a key,
without a network, and the same every time: with the tool calls that a file names.`,
		Example: `  holdfast model serve --script demo.yaml`,
	}
	c.AddCommand(newModelServe(a))
	return c
}

// modelServer holds the command line of model serve.
type modelServer struct {
	script, listen, log string
}

func newModelServe(a *app) *cobra.Command {
	var m modelServer
	c := &cobra.Command{
		Use:   "serve --script FILE [flags]",
		Short: "Answer agents with the tool calls of a file",
		Long: `Answer agent programs on loopback with the tool calls of FILE, until Ctrl-C. It
speaks Anthropic Messages, OpenAI Responses, OpenAI Chat Completions and Gemini. A
prompt with the marker [[script:NAME]] plays the script of that name; anything else
is answered with a word of text. docs/formats/model-script.md describes FILE.

The agent carries out what FILE says, with all the rights that it has: outside a
boundary, give it no script that you have not read.`,
		Example: `  holdfast model serve --script demo.yaml
  holdfast model serve --script demo.yaml --listen 127.0.0.1:8080 --log wire.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.serveModel(ctx, m)
		},
	}
	f := c.Flags()
	f.Var((*command.TextFlag)(&m.script), "script", "FILE of scripts")
	f.Var((*command.TextFlag)(&m.listen), "listen", "ADDRESS on loopback (default 127.0.0.1 with a free port)")
	f.Var((*command.TextFlag)(&m.log), "log", "append what goes over the wire to FILE, as JSON lines, keys masked")
	return c
}

// serveModel answers agents until ctx ends.
func (a *app) serveModel(ctx context.Context, m modelServer) error {
	if m.script == "" {
		return command.Usage(errors.New("no script is named"), "holdfast model serve --script FILE")
	}
	scripts, err := a.loadScripts(m.script)
	if err != nil {
		return err
	}
	options := model.Options{Scripts: scripts}
	if m.log != "" {
		f, err := os.OpenFile(a.inDir(m.log), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("opening the log: %w", err)
		}
		defer f.Close()
		options.Wire = f
	}
	l, err := listenLoopback(m.listen)
	if err != nil {
		return command.Usage(err, "name an address on loopback: --listen 127.0.0.1:8080")
	}
	a.tellModel(l.Addr().String(), scripts)
	return model.New(options).Serve(ctx, l)
}

// listenLoopback listens on an address that no other machine can reach; "" means
// any free port.
func listenLoopback(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	if !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("listening on %s: %w", address, model.ErrNotLoopback)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}

// inDir returns a path as the user meant it.
func (a *app) inDir(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.Dir, path)
}

func (a *app) loadScripts(path string) ([]model.Script, error) {
	f, err := os.Open(a.inDir(path))
	if err != nil {
		return nil, fmt.Errorf("reading scripts: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 8<<20))
	if err != nil {
		return nil, fmt.Errorf("reading scripts: %w", err)
	}
	return model.Load(data, path)
}

// modelUses shows one way to start each agent. {url} is the base URL, {mark} the
// marker of a script.
const modelUses = `  ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=dummy CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 claude -p '{mark}'
  FAKE_KEY=dummy codex exec -c model=gpt-5.5 -c model_provider=hf -c 'model_providers.hf={name="hf", base_url="{url}/v1", env_key="FAKE_KEY", wire_api="responses"}' '{mark}'
  GEMINI_API_KEY=dummy GOOGLE_GEMINI_BASE_URL={url} gemini -p '{mark}'    # with "security": {"auth": {"selectedType": "gemini-api-key"}} in its settings
  OPENAI_API_KEY=dummy OPENAI_BASE_URL={url}/v1 OPENAI_MODEL=m qwen --auth-type openai -p '{mark}'
  COPILOT_PROVIDER_BASE_URL={url}/v1 COPILOT_PROVIDER_API_KEY=dummy COPILOT_MODEL=claude-sonnet-4.5 COPILOT_OFFLINE=true copilot -p '{mark}'
  OPENCODE_CONFIG_CONTENT='{"model":"hf/m","small_model":"hf/m","provider":{"hf":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{url}/v1","apiKey":"dummy"},"models":{"m":{"tool_call":true}}}}}' opencode run '{mark}'
`

// tellModel prints where the model is and how agents find it.
func (a *app) tellModel(address string, scripts []model.Script) {
	url := "http://" + address
	fmt.Fprintf(a.Stdout, "anthropic %s\nresponses %s/v1\nchat      %s/v1\ngemini    %s\n", url, url, url, url)
	fmt.Fprintf(a.Stdout, "\nAgents start against it with a dummy key:\n\n")
	io.WriteString(a.Stdout, strings.NewReplacer("{url}", url, "{mark}", model.Marker(scripts[0].Name)).Replace(modelUses))
	fmt.Fprintf(a.Stdout, "\nCtrl-C ends it.\n")
}
