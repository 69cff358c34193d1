// Package relay connects a running command and its caller: it copies the standard
// streams, passes signals and the size of the terminal on, follows job control, and
// passes connections to published ports into the boundary. For an MCP server it hands
// the streams to package gateway.
//
// A run calls Listen before anything is started, Streams.AddTo for each launch and
// Attend once the command runs; Attend returns when everything inside is dead and all
// output was passed on, or the run had to end first.
//
// It knows neither policy nor record beyond what an MCP server's messages need.
package relay
