//go:build linux

package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// recordStart records what the boundary was found to be, what holds in it and
// that the command is about to be executed, and begins to record what it does.
func (r *running) recordStart(plan policy.Plan, p boundary.Posture) error {
	own := r.bus.Sensor(event.Task)
	err := own.Emit(event.Event{Action: event.SessionAttest, Object: plan.Workspace, Verdict: event.Allowed, Detail: postureDetail(p)})
	if err != nil {
		return err
	}
	detail := map[string]string{"profile": plan.Profile, "level": string(plan.Record.Level), "without": join(plan.Accepted), "home": plan.Identity.Home, "sensors": r.sensors.Names(), "review": string(r.session.View())}
	for i, s := range plan.Sources {
		detail[fmt.Sprintf("policy.%d", i+1)] = strings.TrimSpace(s.Name + " " + s.SHA256)
	}
	maps.DeleteFunc(detail, func(_, v string) bool { return v == "" })
	err = own.Emit(event.Event{Action: event.SessionStart, Object: plan.Workspace, Verdict: event.Allowed,
		Process: event.Process{Argv: slices.Clone(r.task.Argv), Cwd: plan.Dir}, Detail: detail})
	if err != nil {
		return err
	}
	return r.sensors.Begin()
}

// recordRefused records that nothing was executed, and why: where the boundary
// was not what it should be, that is worth an alert.
func (r *running) recordRefused(why error) error {
	var differs *boundary.PostureError
	if errors.As(why, &differs) {
		err := r.bus.Sensor(event.Task).Emit(event.Event{Action: event.SessionAttest, Object: r.task.Plan.Workspace, Verdict: event.Denied,
			Detail: map[string]string{"differs": strings.Join(differs.Diff, "; ")}})
		if err != nil {
			return err
		}
	}
	return r.bus.End(map[string]string{"status": "not started", "reason": fmt.Sprint(why)})
}

func join[S ~string](words []S) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return strings.Join(out, ",")
}

// postureDetail returns what was attested, as details of an event.
func postureDetail(p boundary.Posture) map[string]string {
	var own []string
	for ns, differs := range p.Namespaces {
		if differs {
			own = append(own, ns)
		}
	}
	slices.Sort(own)
	readonly := 0
	for _, m := range p.Mounts {
		if m.ReadOnly {
			readonly++
		}
	}
	return map[string]string{
		"uid": fmt.Sprint(p.UID), "gid": fmt.Sprint(p.GID), "capabilities": p.Capabilities["CapBnd"],
		"no_new_privs": fmt.Sprint(p.NoNewPrivs), "seccomp": fmt.Sprint(p.Seccomp), "namespaces": strings.Join(own, ","),
		"mounts": fmt.Sprint(len(p.Mounts)), "mounts_readonly": fmt.Sprint(readonly),
	}
}

// recordReload records that the policy was reloaded, or why it was not, and returns the
// error for its caller to report.
func (r *running) recordReload(err error) error {
	e := event.Event{Action: event.PolicyReload, Object: r.task.Plan.Workspace, Verdict: event.Allowed}
	if err != nil {
		e.Verdict, e.Detail = event.Denied, map[string]string{"reason": err.Error()}
	}
	return errors.Join(err, r.bus.Sensor(event.Task).Emit(e))
}

// maxRefusedRecorded is of how many settings of git it is recorded that they are not taken
// over.
const maxRefusedRecorded = 100

// recordEnd records what was held back, which limits were hit and how the run ended.
func (r *running) recordEnd(result Result) error {
	emit := r.bus.Sensor(event.Task).Emit
	for _, q := range result.Settled.Quarantined {
		err := emit(event.Event{Action: event.FileQuarantine, Object: string(q.Path), Verdict: event.Denied, Layer: event.LayerProtected,
			Detail: map[string]string{"reason": q.Reason}})
		if err != nil {
			return err
		}
	}
	recorded := 0
	for _, c := range result.GitChanges {
		if c.Refused == "" || recorded == maxRefusedRecorded {
			continue
		}
		recorded++
		err := emit(event.Event{Action: event.FileQuarantine, Object: string(c.File), Verdict: event.Denied, Layer: event.LayerProtected,
			Detail: map[string]string{"reason": c.Refused, "setting": c.Name(), "value": strings.Join(c.Now, "\n")}})
		if err != nil {
			return err
		}
	}
	limits := slices.Clone(result.Exit.Hits)
	if result.Exit.Reason != "" {
		limits = append(limits, result.Exit.Reason)
	}
	for _, l := range limits {
		if err := emit(event.Event{Action: event.SessionLimit, Object: l, Verdict: event.Denied}); err != nil {
			return err
		}
	}
	detail := map[string]string{"status": fmt.Sprint(result.Exit.Status())}
	if result.Exit.Signal != 0 {
		detail["signal"] = result.Exit.Signal.String()
	}
	return r.bus.End(detail)
}
