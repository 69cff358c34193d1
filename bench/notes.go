package main

// notes says why a goal is missed, as a profile showed it, and what follows
// from that. The key is the goal as the report names it. It stands here, and
// not in the report, so that measuring again keeps it; a note of a goal that is
// met is not printed.
var notes = map[string]string{}

// remarks are printed always.
var remarks = []string{
	"Equal view: bubblewrap's arguments are made from what a run of Holdfast shows in the same workspace, handed in with `--args`, and checked against what bubblewrap then shows. Where the two cannot be equal, bubblewrap has the easier part: a tool cache that Holdfast lays under a discarded overlay is bound writable, the masks in /proc are those that bubblewrap makes by itself, and it has neither Landlock nor seccomp.",
	"All contestants get the same environment inside, an empty standard input, and a file as standard output; Holdfast alone puts a pipe of its own in between.",
	"Figures include the start and the end of a run. \"Running alone\" takes off what `true` costs more under Holdfast than bare.",
	"50 runs at once are nothing but starts, so they are held against bubblewrap, not against 50 bare `true`.",
}
