// Package export writes events in the formats that other systems read: OCSF (Open
// Cybersecurity Schema Framework) and OpenTelemetry logs. Nothing depends on those
// formats inside Holdfast: exports are made from the record at the end, and what
// has no name in a format gets a name of ours, so that an export loses nothing.
//
// The tables of this package say what every action, field and detail means and
// what the formats call it; Reference prints them.
package export
