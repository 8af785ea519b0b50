// Package floors holds no code: its test keeps the layout of the module, which
// CONTRIBUTING.md shows. Imports go downwards only.
package floors
