package main

// notes says why a goal is missed, according to a profile, and what follows from
// that. The key is the goal as in the report. The notes are here, and not in the
// report, so that a new measurement keeps them; the note of a goal that is met is
// not printed.
var notes = map[string]string{
	"start of true: wall time, times bwrap":                startReason,
	"start of true, no record: wall time, times bwrap":     startReason,
	"50 at once: wall time, times bwrap":                   "it is the processor time of a start, fifty times over on two cores, and half as much again, since caches and the locks of the kernel (mounts, namespaces, control groups) are shared.",
	"500 execs, no record: wall time, times bwrap":         "after taking off the start, 5 % are left above bubblewrap's figure, which is what bubblewrap does not have: Landlock and the filter on every call of 500 short processes.",
	"500 execs: wall time, times bwrap":                    perExec,
	"git status: wall time, times bwrap":                   walk,
	"grep -r: wall time, times bwrap":                      walk,
	"rg: wall time, times bwrap":                           walk,
	"python start, no record: wall time, times bwrap":      "it is the start: what Python itself takes is bubblewrap's figure.",
	"untar, no record: wall time, times bwrap":             "the start, and the look at each of 20,000 new files at the end, which takes what a start in 20,000 files takes (see there); the rest is Landlock and the filter on each call.",
	"go build, no record: wall time, times bwrap":          "the start has a third of it; the rest is Landlock, which goes up the path of each file that is opened, and the filter.",
	"npm ci, no record: wall time, times bwrap":            "it is the start, and the look at what is new at the end.",
	"memory of the supervisor at rest, KiB":                memoryReason,
	"peak memory of the supervisor, KiB":                   memoryReason,
	"new user: failures that say no reason, of all agents": pathReason,
	"new user: agents without a commit at the end":         pathReason,
	"log: show of a million records, s":                    "two thirds of it are reading and verifying, on both cores: each record is parsed, hashed and checked once. The story of the run is made beside it.",
	"prove: the headline cases (--core --quick), s":        "141 rows are 41 s of processor time on two cores, 294 ms a row where the row itself takes 99 with no sandbox: the rest are two or three starts of Holdfast a row and the reading of their records.",
	"prove: all of it, s":                                  "848 rows are 297 s of processor time on two cores, so that 149 s are the least: 350 ms a row, and starts for the most part, as for the headline cases. Ten rows alone take 137 s, beside others: floods that go on until the bounds of the record are reached (130,000 files, 450,000 refused calls), a race that is tried 20,000 times, a program that is compiled with an empty cache. 307 s before starts became cheaper and rows waited for events.",

	"record standard, start of true: ms of wall time, more than no record":        "of what it adds, serving the root has the largest part (some 60 requests, 2 to 3 ms), then the first notified execution (1 ms) and the three waits for the disk at the end (1 ms). It was 39 ms before what the root holds was there from the beginning and the threads of the supervisor waited without holding up each other.",
	"record standard, python start: processor time, times no record":              singleEventReason,
	"record standard, git status: processor time, times no record":                singleEventReason,
	"record standard, untar to tmpfs: processor time, times no record":            switchReason,
	"record standard, npm ci: processor time, times no record":                    stopReason,
	"record standard, go build: processor time, times no record":                  stopReason,
	"record full, grep -r: processor time, times no record":                       switchReason,
	"record full, rg: processor time, times no record":                            switchReason,
	"record standard without /dev/fuse, grep -r: processor time, times no record": "each open for reading is received, its path read, the file looked at as its caller would, and let go on: 12.7 µs in four system calls of the supervisor and two switches, 7 of which are the least that the switches take.",
	"an open to write, recorded (standard), times strace":                         cheaper,
	"an open to read, recorded (full), times strace":                              cheaper,
	"log: peak memory of a run of a million events, KiB":                          "23 MB are pages of the program's file, which all runs share. The live heap is 3 MB; the collector is told to begin at 16 (internal/cli), for the sake of short starts.",

	"gate: 100 of the beginning of any word, µs an exec":  "each of the hundred rules looks at each argument, 500 comparisons for five arguments, and none of it tells beforehand that a rule cannot match: an index of words helps where a whole word is named. Shipped rules name their programs.",
	"gate: 100 that only the evaluator tells, µs an exec": "each of the hundred rules makes a list of arguments before it can say that it does not match, and the index knows nothing of it. Such a rule should name its program first: then others pay nothing for it.",

	"idle connection, KiB":                                                               "by Go's own figures (500 connections through the engine in a test) 11 KiB are the stacks of its two goroutines and what they grew to while it was dialled, and 5 KiB its objects. The rest was not profiled; most likely it is garbage of making it, which the collector leaves: it begins at 16 MiB, for the sake of short starts.",
	"new connection, ms more than direct":                                                connectReason,
	"download, connections: 1, times direct":                                             oneConnReason,
	"download, connections: 1, times socat":                                              oneConnReason + " " + loadReason,
	"processor time a GB, connections: 1, times socat":                                   oneConnReason + " " + loadReason,
	"download, connections: 32, times direct":                                            manyConnsReason,
	"download, connections: 256, times direct":                                           manyConnsReason,
	"start in 20,000 files, second run and later: ms more than in an empty workspace":    walk,
	"start in 20,000 files, first run: µs of processor time a file":                      walk,
	"start in 200,000 files, second run and later: ms more than in an empty workspace":   walk,
	"start in 200,000 files, first run: µs of processor time a file":                     walk,
	"start in 1,000,000 files, second run and later: ms more than in an empty workspace": walk,
	"start in 1,000,000 files, first run: µs of processor time a file":                   walk,
	tlsGoal + http1: tlsReason,
	tlsGoal + http2: tlsReason,
}

// startReason is the reason for starts.
const startReason = "time stamps in a build of their own (docs/decisions/start.md): the program's own start takes 3.3 ms, policy, session, record and scan 3, the launch as data and its program 2.2, namespaces, mounts, root and filter 4.3, attestation and command 2.3, the end 2.5: the first and the last alone are more than bubblewrap as a whole. Of 24 ms with a record (traced by sched_switch) one processor works for 14, both for 5 and none for 5, in 70 pieces: threads that wait for each other, FUSE look-ups, fsync. In a profile 15 % are page faults of the program's file, 8 % the monitor of Go's runtime, 4 % the table of Ed25519; nothing else is more than 3 %. Tried: control groups entered beside the view, and of version 1 by the first process itself (7 ms of root's start), rules and signing prepared beside the policy, the memory of other processes asked for at the first look (5 %), only the called verb made of the command line; a resident supervisor was decided against."

// memoryReason is the reason for the memory of the supervisor.
const memoryReason = "of 25 MiB that are resident 7 are the program's own memory, and 18 are pages of its file, which all runs share: TLS, HTTP, names, the network stack and their tables. A smaller program would need another language or a second program for the network."

// tlsReason is why terminated TLS has at most half of the rate.
const tlsReason = "a byte is encrypted and decrypted twice instead of once on the same cores, by a supervisor that is one more of each end. With both cores busy all the time, and a supervisor that costs what the two ends do, half of direct would be the most. In a profile of the supervisor 44 % of the samples are AES-GCM, 45 % system calls, of which there is one for 128 KiB either way; the rest is net/http and copies."

// connectReason is what a new connection consists of.
const connectReason = "in a profile of the supervisor 40 % of the samples are threads of Go's runtime that sleep and are woken: a connection is accepted in one goroutine, served and dialled in another, and passed on by two. Connecting to the server takes what it takes without Holdfast, and the client's connect(2), which is seen for the record, 0.05 ms. The rest is spread: accepting 7 %, the two events 5 %, closing 5 %, deciding less than 2 %."

// switchReason is the reason for the minimum cost of a notified call.
const switchReason = "a notified call is two switches between threads at the least, which took 6.9 µs in C in the study that the goals come from. In a profile of opens the supervisor's part is receiving and answering (24 %), the event on its way through masking, log and detection (17), finding out what the path is (17), and reading it from the caller (9); there are 2.07 switches an open, so nothing is left to be saved there."

// stopReason is the reason for programs with several threads.
const stopReason = "a program with several threads is stopped after each call that changes a file, and what it did is compared: 55 µs a call, of which the stop takes 18 (ptrace: seize, interrupt, read the result, let go) and what goes on with it on the side of the program as much again. npm makes some 50 such calls a package."

// cheaper is why the goal against strace is out of reach.
const cheaper = "strace takes 13 to 14 µs for an open here, and 22 to 24 in the study that the goal comes from: 0.4 of that is less than the notification alone. " + switchReason

// perExec is the reason for short processes.
const perExec = "an execution takes the supervisor some 20 system calls and 115 µs: it is received, read (arguments, directory, program, loader), recorded before it goes on (67 µs, in the thread that receives), and its end is recorded too. The two switches and the write of the record are among it."

// singleEventReason is the reason for events that come one at a time.
const singleEventReason = "besides what an execution costs, an event that comes alone finds all threads of the supervisor asleep and its memory out of the processor's caches, and wakes the monitor of Go's runtime, which looks some ten times, every 20 µs, for something to do: a fifth of what the record costs a start of Python."

// oneConnReason is the shared reason of the goals for one connection.
const oneConnReason = "in a profile of the supervisor 85 % of the samples lie inside splice(2), a quarter to take bytes off one socket and three quarters to send them on the other, which on loopback includes receiving them there. A pair of calls moves 360 KB, so fewer calls would change little. How much the two ends and the supervisor overlap is up to the scheduler: rates of single rounds lie far apart."

// loadReason is why other load of the machine affects what is compared with socat.
const loadReason = "The socat layout costs 1.7 to 1.9 s of processor time a GB here and 2.8 in the study that the goal comes from; and it runs as five processes where Holdfast runs as one, so that the scheduler of a busy machine gives it five shares."

// manyConnsReason is the reason for many connections.
const manyConnsReason = "with 256 connections the supervisor needs 0.16 s of processor time a GB as long as there are pipes for all, and 0.5 where this user's programs have used up what the kernel grants (fs.pipe-user-pages-soft) and bytes are copied. Beyond that it is the load of the machine: the ratio of single rounds lies between 0.4 and 0.7."

// walk is the shared reason of workloads in large workspaces.
const walk = "the start asks for the status of each file in the workspace, since a second name (hard link) shows in nothing else, not even in its directory where it was made from outside (git clone --local, cp -al). A C program that does nothing but that takes 1.3 µs a file here, of which 1.1 are two or three misses of the processor's caches in the kernel (__d_lookup_rcu, ext4_getattr): 13 ms for 20,000 files on two processors. Holdfast takes 1.8 in directories of 50 files, and 2.8 in those of 10: each directory is opened, read, watched and closed for 10 µs. At the end what nothing happened in is passed over. Tried: names in the order of their inodes (5 % slower); a cache of the names, which would save 0.3 µs a file; judging files when they are opened to write, which has to stop every call that opens or changes one (6 to 20 µs each, more than the look for whoever writes). The walk is shared by all processors since, which halved its wall time; git's objects are files like others, so that the repository has 40,000. The command itself pays 9 % for Landlock, which goes up each path, and 3 % for the filter (rg). As root git reads all files again: in each run they belong to another user, and git compares owners. GIT_CONFIG_COUNT with core.checkStat=minimal in the environment took that away (276 to 123 ms), and was taken back: it is a variable by which a program can be made to run code, of which none comes in (ENV-008)."

// remarks are always printed.
var remarks = []string{
	"Equal view: bubblewrap's arguments are made from what a run of Holdfast shows in the same workspace, handed in with `--args`, and checked against what bubblewrap then shows. Where the two cannot be equal, bubblewrap has the easier part: a tool cache that Holdfast lays under a discarded overlay is bound writable, the masks in /proc are those that bubblewrap makes by itself, and it has neither Landlock nor seccomp.",
	"All contestants get the same environment inside, an empty standard input, and a file as standard output; Holdfast alone puts a pipe of its own in between.",
	"Figures include the start and the end of a run. \"Holdfast\" has everything on, with the standard record, which sees what is missing through /dev/fuse.",
}

// egressRemarks are always printed.
var egressRemarks = []string{
	"Client and server are the same two programs everywhere, the server on the host's loopback; connections are open before the clock of a download runs. All of it shares the cores of one machine: what a layout takes is missing at the ends.",
	"socat is the layout of products that lead a network namespace out by bridges: bubblewrap without a network, a socat inside, a socat outside, and a CONNECT proxy written in Go. Each of its connections starts two processes.",
	"slirp4netns runs with an MTU of 65520, pasta without the ports that it would forward past its own network; both are Debian's packages, and open a device for packets that Holdfast does without. Their clients reach the server at 10.0.2.2 and at the gateway.",
	"Processor time is the control group's, less what the client says of itself; the server stands outside. What the kernel does for a sender on loopback counts for who wrote.",
	"Holdfast intercepts by address: the client asks for the name once and then connects to the address that it was given, as the other clients do.",
}

// recordRemarks are always printed.
var recordRemarks = []string{
	"\"No record\" is `--without record`: no call is notified, no log of what happens is kept, and all else is the same run.",
	"strace stands around the bare command: inside a run there is no ptrace. It prints to a file what it sees, as it does by itself; the record also has the executable's digest, the process tree and what became of it, and is chained.",
	"The first runs, not counted, fill the cache of the digests of executables.",
}
