// Package policy turns what a human wrote about a run (a profile, files,
// flags) into a Plan that a backend can enforce, and says of each entry where
// it came from. It decides nothing about mechanisms and prints nothing: what
// cannot be parsed, resolved or kept is an error, never a smaller plan.
package policy
