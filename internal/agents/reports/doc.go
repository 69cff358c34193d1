// Package reports accepts the tool calls that agents inside report through their
// hooks, records them and answers: with the policy's decision about a call, and
// with a human's if a rule of consent requires one.
//
// A run calls Tools.AddTo for a launch and Listen when the view is complete, and
// passes process events to Server.Watch, so that a hook which ends without a
// report is recorded. The inside decides how many reports it sends: they are
// limited.
//
// A report is only the agent's claim. This package opens no file that a report
// names, and knows no agent program: package hooks makes their settings.
package reports
