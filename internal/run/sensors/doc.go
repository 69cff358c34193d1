// Package sensors starts what watches one run and joins it to the bus: the supervisor
// of system calls, the tripwire at the root of the view, the kernel's Landlock audit,
// honeytokens, and the reports of agents' hooks.
//
// A run calls New, Set.AddTo for each launch, Set.Begin when the boundary was attested
// and Set.Close when everything inside is dead. Set.Client names the process inside
// that holds a connection; Set.Decoys are the secrets in the honeytokens.
//
// It decides what is an event worth recording: what programs look for by themselves is
// none (ordinary.go), and what no sensor sees is declared (blind.go). What holds is the
// boundary's; the rules of consent decide what may happen.
package sensors
