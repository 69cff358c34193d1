package main

// notes says why a goal is missed, as a profile showed it, and what follows
// from that. The key is the goal as the report names it. It stands here, and
// not in the report, so that measuring again keeps it; a note of a goal that is
// met is not printed.
var notes = map[string]string{
	"start of true: wall time, times bwrap":         "a profile of starts in an empty directory puts 59 of the 79 parts that are ours into the supervisor: the Go runtime's start and memory, reading the policy, the scan for protected paths (8), building the launch (5), the record of the session (3), self-attestation (3); 15 are the janitor's, which mounts and installs the filter. The overlays for tool caches, which bubblewrap is spared, are half a millisecond of eleven.",
	"git status: processor time, times bare":        walk,
	"grep -r: processor time, times bare":           walk,
	"rg: processor time, times bare":                walk,
	"untar: processor time, times bare":             walk,
	"memory of an idle run beyond the command, KiB": "the janitor and pid 1 still map the launch program: 56 KiB of steps and 64 KiB of their data, of which 44 KiB are copies of their own, in each.",
}

// walk is the reason that workloads in large workspaces share.
const walk = "a third of the profile is the walk through the workspace in search of protected paths, before and after the command, which asks for the status of every file; Landlock adds its microsecond for every open."

// remarks are printed always.
var remarks = []string{
	"Equal view: bubblewrap's arguments are made from what a run of Holdfast shows in the same workspace, handed in with `--args`, and checked against what bubblewrap then shows. Where the two cannot be equal, bubblewrap has the easier part: a tool cache that Holdfast lays under a discarded overlay is bound writable, the masks in /proc are those that bubblewrap makes by itself, and it has neither Landlock nor seccomp.",
	"All contestants get the same environment inside, an empty standard input, and a file as standard output; Holdfast alone puts a pipe of its own in between.",
	"Figures include the start and the end of a run. \"Running alone\" takes off what `true` costs more under Holdfast than bare.",
	"50 runs at once are nothing but starts, so they are held against bubblewrap, not against 50 bare `true`.",
}
