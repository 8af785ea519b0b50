// Command train trains a network as a configuration file says, on one rank or
// many. "train help" lists what it does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gradfusion/gradfusion/data"
	"github.com/gradfusion/gradfusion/observe/metrics"
	"github.com/gradfusion/gradfusion/trainer"
)

func main() {
	c := &command{
		environ: os.Environ(), stdout: &results{to: os.Stdout}, stderr: os.Stderr,
		terminal: isTerminal(os.Stderr), started: time.Now(), train: trainer.Run,
	}
	os.Exit(c.run(os.Args[1:]))
}

// command is one invocation of the program.
type command struct {
	environ        []string
	stdout, stderr io.Writer
	terminal       bool // stderr is one
	started        time.Time
	train          func(context.Context, trainer.Job) (*metrics.Summary, error)
}

// run returns the exit code. A user never sees a stack trace.
func (c *command) run(args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			code = c.report(&bug{what: fmt.Sprint(r)})
		}
	}()
	err := c.dispatch(args)
	if out, ok := c.stdout.(*results); ok && err == nil && out.err != nil {
		err = fmt.Errorf("the result cannot be written to the standard output: %w", out.err)
	}
	return c.report(err)
}

// results is the standard output. It keeps the first error, which is none of
// the training's.
type results struct {
	to  io.Writer
	err error
}

func (r *results) Write(b []byte) (int, error) {
	_, err := r.to.Write(b)
	if r.err == nil {
		r.err = err
	}
	return len(b), nil
}

// report shows an error and returns its exit code.
func (c *command) report(err error) int {
	if err != nil {
		io.WriteString(c.stderr, paragraph(err))
	}
	return exitCode(err)
}

func (c *command) dispatch(args []string) error {
	if len(args) == 0 {
		return usage("nothing to do: name a configuration, as in \"train -config resnet.yaml\"; \"train help\" lists the rest")
	}
	name, rest := args[0], args[1:]
	switch {
	case name == "-h" || name == "-help" || name == "--help" || name == "help":
		return c.help(rest)
	case strings.HasPrefix(name, "-"):
		return c.runTraining(args)
	case name == "run":
		return c.runTraining(rest)
	case name == "bench":
		return c.runBench(rest)
	case name == "diag":
		return c.runDiag(rest)
	case name == "version" || name == "data":
		return c.tell(name, rest)
	}
	for _, later := range laterCommands() {
		if name == later.name {
			return usage("train %s (%s) is not in this version yet", name, later.about)
		}
	}
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return usage("unknown command %q; to train as this file says, write \"train -config %s\"", name, name)
	}
	return usage("unknown command %q%s", name, suggestion(name, []string{"run", "bench", "diag", "data", "help", "version"}))
}

// tell prints what needs no configuration.
func (c *command) tell(name string, args []string) error {
	switch {
	case name == "version" && len(args) == 0:
		fmt.Fprintln(c.stdout, "GradFusion", version())
		return nil
	case name == "data" && len(args) == 1 && args[0] == "list":
		for _, set := range data.Names() {
			name := set.Name
			for line := range strings.Lines(wrap(set.About, width-21)) {
				fmt.Fprintf(c.stdout, "%-20s %s", name, line)
				name = ""
			}
		}
		return nil
	case name == "data":
		return usage("train data knows one thing: \"train data list\"")
	}
	return usage("train version takes no arguments")
}

// version is what the build knows of its source.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	out := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(out, s.Value[:12]) {
			out += " " + s.Value[:12]
		}
	}
	return out + " " + info.GoVersion
}

type laterCommand struct{ name, about string }

// laterCommands are part of the command line's contract but not built yet.
func laterCommands() []laterCommand {
	return []laterCommand{
		{"tune", "choice of communication settings by measurement"},
		{"report", "a report on a run"},
		{"plan", "a plan for a topology"},
		{"ckpt", "work on checkpoints"},
	}
}
