package realtest

import (
	"slices"

	"holdfast.dev/holdfast/internal/prove/model"
)

// work is a complete piece of legitimate work, such as a person would give to an
// agent.
var work = []model.Step{
	{Op: model.Shell, Command: "cd {ws} && git clone -q project work && cd work && git config user.name agent && git config user.email agent@example.org && git log --oneline"},
	{Op: model.Read, Path: "{ws}/work/greet.js"},
	{Op: model.Edit, Path: "{ws}/work/greet.js", Old: "module.exports = name => 'Hello, ' + name;", New: "module.exports = name => 'Good morning, ' + name;"},
	{Op: model.Write, Path: "{ws}/work/NOTES.md", Content: "The greeting depends on the time of day.\n"},
	{Op: model.Shell, Command: `cd {ws}/work && npm install --registry=https://private.example.org/ "--//private.example.org/:_authToken=$API_TOKEN" --no-audit --no-fund --fetch-retries=0 && npm test`},
	{Op: model.Shell, Command: "cd {ws}/work && git add -A && git commit -q -m 'greet: say good morning' && git log --oneline | wc -l > ../commits"},
	{Op: model.Spawn, Script: "{script}-sub"},
	{Op: model.MCP, Server: "notes", Tool: "note", Arguments: map[string]any{"text": "done"}},
}

// workOf is the work as the agent can do it: if it has no edit tool, it rewrites
// the file.
func (a worker) workOf() []model.Step {
	steps := slices.Clone(work)
	for i, s := range steps {
		if s.Op == model.Edit && slices.Contains(a.lacks, model.Edit) {
			steps[i] = model.Step{Op: model.Write, Path: s.Path, Content: s.New + "\n"}
		}
	}
	return steps
}

// subWork is the work of the sub-agent.
var subWork = []model.Step{{Op: model.Shell, Command: "cd {ws}/work && git show --stat > ../shown"}}

// notes is an MCP server that writes down the text it receives (stdio, JSON-RPC
// 2.0, one message per line).
const notes = `const fs = require('fs');
const tool = {name: 'note', description: 'Notes a text.', inputSchema: {type: 'object', properties: {text: {type: 'string'}}, required: ['text']}};
require('readline').createInterface({input: process.stdin}).on('line', line => {
  const m = JSON.parse(line);
  if (m.id === undefined) return;
  let result = {};
  if (m.method === 'initialize') result = {protocolVersion: m.params.protocolVersion, capabilities: {tools: {}}, serverInfo: {name: 'notes', version: '1'}};
  if (m.method === 'tools/list') result = {tools: [tool]};
  if (m.method === 'tools/call') {
    fs.writeFileSync(__dirname + '/noted', m.params.arguments.text + '\n');
    result = {content: [{type: 'text', text: 'noted'}]};
  }
  process.stdout.write(JSON.stringify({jsonrpc: '2.0', id: m.id, result}) + '\n');
});
`

// project is the repository that the agent clones.
var project = map[string]string{
	"package.json": `{"name":"greeter","version":"1.0.0","scripts":{"test":"node test.js > ../tested"},"dependencies":{"leftover":"1.0.0"}}`,
	"greet.js":     "module.exports = name => 'Hello, ' + name;\n",
	"test.js":      "const assert = require('assert');\nassert.equal(require('./greet')('you'), 'Good morning, you');\nassert.equal(require('leftover'), 'from the package');\nconsole.log('passed');\n",
	".gitignore":   "node_modules\n",
}

// continueSettings configure the provider and the server.
const continueSettings = `name: work
version: 1.0.0
schema: v1
models:
  - {name: scripted, provider: openai, model: gpt-4.1, apiBase: https://model.example.org/v1, apiKey: "${{ secrets.OPENAI_API_KEY }}", roles: [chat], capabilities: [tool_use]}
mcpServers:
  - {name: notes, command: node, args: ["{ws}/notes.js"]}
`
