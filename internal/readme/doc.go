// Package readme holds no code: its test keeps the promises of README.md. The
// commands shown there run, the paths named there exist, and the Go code shown
// there is tested code.
package readme
