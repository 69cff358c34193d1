// The hook informs, and the boundary enforces: when it cannot be asked, the
// tool is used.
import { spawn } from "node:child_process"

const hook = "HOOK"
const callTime = "CALLTIME" // seconds: a human may be asked about a call

function ask(kind, report) {
  return new Promise((done) => {
    let out = ""
    let child
    try {
      const wait = kind === "call" ? [String(callTime)] : []
      child = spawn(hook, ["hook", "opencode", kind, ...wait], { stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return done({})
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), (kind === "call" ? callTime : 10) * 1000)
    child.on("error", () => done({}))
    child.on("close", () => {
      clearTimeout(timer)
      try {
        done(out ? JSON.parse(out) : {})
      } catch {
        done({})
      }
    })
    child.stdout.on("data", (data) => (out += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(report))
  })
}

export const Holdfast = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const answer = await ask("call", {
      tool_name: input.tool,
      tool_input: output.args,
      tool_use_id: input.callID,
      session_id: input.sessionID,
      cwd: directory,
    })
    if (answer.deny) throw new Error(answer.deny)
  },
  "tool.execute.after": async (input, output) => {
    await ask("result", {
      tool_name: input.tool,
      tool_input: input.args,
      tool_use_id: input.callID,
      session_id: input.sessionID,
      cwd: directory,
      tool_response: { title: output.title, output: output.output },
    })
  },
})
