package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/export"
)

// collector posts each alert as a log record of OpenTelemetry.
type collector struct {
	*poster
	options export.Options
}

func newCollector(s policy.AlertSink, o Options) (sink, error) {
	p, err := newPoster(s, o)
	if err != nil {
		return nil, err
	}
	return &collector{p, export.Options{Host: o.Host, Version: o.Version}}, nil
}

func (c *collector) send(ctx context.Context, body []byte) error {
	d, err := decode(body)
	if err != nil {
		return err
	}
	answer, err := c.post(ctx, c.request(d), nil)
	if err != nil {
		return err
	}
	var partial struct {
		PartialSuccess struct{ RejectedLogRecords json.Number }
	}
	if json.Unmarshal(answer, &partial) == nil && strings.Trim(string(partial.PartialSuccess.RejectedLogRecords), "0") != "" {
		return &refusal{fmt.Errorf("sending an alert: the collector rejected it")}
	}
	return nil
}

func (c *collector) request(d *Document) []byte {
	q := export.NewRequest(c.options, d.Session)
	r := q.Record(d.Time, d.Severity, "holdfast.alert.raise", d.line())
	r.Text("log.record.uid", d.ID)
	r.Text("holdfast.alert.rule", d.Rule)
	r.Text("holdfast.alert.title", d.Title)
	r.Text("holdfast.alert.severity", d.Severity)
	r.Text("holdfast.alert.technique", strings.Join(d.Technique, ","))
	r.Text("holdfast.alert.key", d.Key)
	r.Number("holdfast.alert.count", int64(d.Count))
	r.Text("holdfast.alert.explanation", d.Explanation)
	r.Text("holdfast.object", d.Object)
	if p := d.Process; p != nil {
		r.Number("process.pid", int64(p.PID))
		r.Number("holdfast.process.exec", int64(p.Exec))
		r.Text("process.executable.path", p.Executable)
		if p.Executable != "" {
			r.Text("process.executable.name", path.Base(p.Executable))
		}
		r.Text("process.working_directory", p.Cwd)
		if len(p.Argv) > 0 {
			r.Texts("process.command_args", p.Argv)
		}
	}
	r.End()
	return q.Bytes()
}
