// Package trial tries real agent programs. An agent is started in its own
// namespaces, with a home, a workspace and an internet made for it. Its model is
// the stand-in of package model, which requests one probe after the other, as a
// jailbroken model would. After each step the world outside is checked: what the
// agent says about it is never evidence.
//
// One play of all probes is a column: agent, version, posture, and the sandbox
// around it. A column whose controls fail is void.
package trial
