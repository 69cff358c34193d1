// Package expr checks and evaluates conditions on events and on attempts. The
// language is a part of the Common Expression Language (cel-spec): what it
// accepts means what it means there, and the rest is refused by name.
//
// A condition is checked before it is used: names, types, the words that a field
// can have. The program that is recorded cannot make a condition expensive: loops do
// not nest, and the cost of an evaluation is counted.
package expr
