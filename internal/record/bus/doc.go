// Package bus carries the events of one run from the sensors to their consumers: the
// signed record, detection with its alerts, and the summary at the end of the run.
//
// Open makes it, and nothing runs without one. Each sensor gets its own Sensor from
// Bus.Sensor and gives it events: Emit returns when the event is in the record,
// Observe before. An event that cannot be recorded ends the run. End writes the last
// event, with the number of events of each sensor, and Close waits for alerts.
//
// It does not know what a sensor is, what a boundary is or how a command is
// started. Sensors do not know each other: what one of them has to learn from
// another is an event.
package bus
