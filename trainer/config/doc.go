// Package config holds the settings of a training run: one Config with the
// defaults, its strict YAML form and the checks on it.
//
// Load reads a file with what it includes, then GRADFUSION_SET_ variables,
// then -set values, and checks the result. Everything that is wrong comes back
// as an *Error that says where it was written: file, line and column with the
// line itself, or the variable or flag. A key that this version accepts but
// does not act upon yet is refused by name, never ignored.
//
// The caller finds out how many ranks there are and asks Batches for the
// micro-batch. An embedder starts from Default, changes fields and calls
// Validate.
//
// The package leaves out flags, the environment of a launcher, and opening
// anything that a setting names.
package config
