// Package alert carries alerts to where people look: a terminal, a file, a webhook,
// syslog or an OpenTelemetry collector. A run never waits for any of them. The
// record lists what could not be delivered by its end, so that it can be sent again.
package alert
