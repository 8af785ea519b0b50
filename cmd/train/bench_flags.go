package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/bench"
	"github.com/gradfusion/gradfusion/collective/plan"
	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/wire"
)

// benchOptions are the flags of "train bench".
type benchOptions struct {
	bench.Config
	file  string // the configuration
	nproc int    // 0: not given
	set   []string
	json  bool
	pack  bool
	plot  string

	scaling []int // numbers of ranks; nil: collectives are measured
	runs    int

	repeated []string // the flags for worker processes
}

// rawBench are the flags as they were written.
type rawBench struct {
	op, nproc, sizes, dtype, transport, algorithm, wire, iters, warmup, scaling, runs string
}

func (o *benchOptions) flags(raw *rawBench) *flag.FlagSet {
	flags := flag.NewFlagSet("train bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&raw.op, "op", "allreduce", "")
	flags.StringVar(&raw.nproc, "nproc", "", "")
	flags.StringVar(&raw.sizes, "sizes", "1KiB,64KiB,1MiB", "")
	flags.StringVar(&raw.dtype, "dtype", "f32", "")
	flags.StringVar(&raw.transport, "transport", "", "")
	flags.StringVar(&raw.algorithm, "algorithm", "auto", "")
	flags.StringVar(&raw.wire, "wire", "", "")
	flags.StringVar(&raw.iters, "iters", "0", "")
	flags.StringVar(&raw.warmup, "warmup", "0", "")
	flags.StringVar(&raw.scaling, "scaling", "", "")
	flags.StringVar(&raw.runs, "runs", "0", "")
	flags.StringVar(&o.file, "config", "", "")
	flags.StringVar(&o.plot, "plot", "", "")
	flags.BoolVar(&o.Private, "private", false, "")
	flags.BoolVar(&o.pack, "pack", false, "")
	flags.BoolVar(&o.Limit, "limit", false, "")
	flags.BoolVar(&o.Waiting, "waiting", false, "")
	flags.BoolVar(&o.json, "json", false, "")
	flags.Func("set", "", func(s string) error { o.set = append(o.set, s); return nil })
	return flags
}

// parseBench reads the flags of "train bench".
func parseBench(args []string) (*benchOptions, error) {
	o, raw := &benchOptions{}, &rawBench{}
	flags := o.flags(raw)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, err
	} else if err != nil {
		var known []string
		flags.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
		return nil, flagError(err, func(name string) error {
			return usage("unknown flag -%s of train bench%s", name, suggestion(name, known))
		})
	}
	if rest := flags.Args(); len(rest) > 0 {
		return nil, usage("%q is no flag and belongs to none, as in \"train bench -op broadcast\"", rest[0])
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		given[f.Name] = true
		if f.Name != "nproc" && f.Name != "set" {
			o.repeated = append(o.repeated, "-"+f.Name+"="+f.Value.String())
		}
	})
	for _, assignment := range o.set {
		o.repeated = append(o.repeated, "-set", assignment)
	}
	if known := []string{"auto", "inproc", "shm", "tcp"}; raw.transport != "" && !slices.Contains(known, raw.transport) {
		return nil, usage("-transport is %q%s", raw.transport, suggestion(raw.transport, known))
	}
	if raw.transport != "" {
		o.set = append(o.set, "collective.transport="+raw.transport)
	}
	if o.pack {
		o.set = append(o.set, "collective.pack=true")
	}
	if given["scaling"] {
		return o, o.readScaling(raw, given)
	}
	return o, o.readCollective(raw, given)
}

// number reads a flag of a whole number.
func number(name, text, what string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, usage("-%s is %q; it wants %s, from %d to %d", name, text, what, least, most)
	}
	return n, nil
}

const mostProcesses = 1 << 16

// readCollective checks what a measurement of collectives needs.
func (o *benchOptions) readCollective(raw *rawBench, given map[string]bool) (err error) {
	if given["runs"] {
		return usage("-runs is for -scaling; a measurement of collectives has -iters")
	}
	if given["nproc"] {
		if o.nproc, err = number("nproc", raw.nproc, "the number of ranks", 1, mostProcesses); err != nil {
			return err
		}
	}
	if o.Iterations, err = number("iters", raw.iters, "the number of timed calls (0: as many as half a second allows)", 0, 1e6); err != nil {
		return err
	}
	if o.Warmup, err = number("warmup", raw.warmup, "the number of calls before the timed ones (0: 8)", 0, 1e6); err != nil {
		return err
	}
	if err := o.readNames(raw); err != nil {
		return err
	}
	if o.Sizes, err = bench.ParseSizes(raw.sizes); err != nil {
		return usage("-sizes: %s", err)
	}
	for _, size := range o.Sizes {
		for _, t := range o.Types {
			if size%t.Size() != 0 {
				return usage("-sizes: %s is no whole number of %v, which have %d bytes", bench.FormatSize(size), t, t.Size())
			}
		}
	}
	return o.checkPlot()
}

// readNames reads operations, types and algorithms.
func (o *benchOptions) readNames(raw *rawBench) error {
	if raw.op == "all" {
		o.Operations = bench.Operations()
	} else {
		for name := range strings.SplitSeq(raw.op, ",") {
			op, err := bench.ParseOperation(name)
			if err != nil {
				return usage("-op: %s, or all", err)
			}
			o.Operations = append(o.Operations, op)
		}
	}
	for name := range strings.SplitSeq(raw.dtype, ",") {
		t, err := device.ParseType(name)
		if err != nil {
			return usage("-dtype: %s", err)
		}
		o.Types = append(o.Types, t)
	}
	for name := range strings.SplitSeq(raw.algorithm, ",") {
		if name != "auto" {
			if _, err := plan.Lookup(name); err != nil {
				return usage("-algorithm: %s", err)
			}
		}
		if !slices.ContainsFunc(o.Operations, func(op bench.Operation) bool { return op.Does(name) }) {
			return usage("-algorithm: %s has no %s%s", name, raw.op, algorithmsOf(o.Operations[0]))
		}
		o.Algorithms = append(o.Algorithms, name)
	}
	return o.readWires(raw.wire)
}

// readWires reads wire formats, which only all-reduces of f32 have.
func (o *benchOptions) readWires(text string) error {
	if text == "" {
		return nil
	}
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(wire.Names(), name) {
			return usage("-wire: unknown wire format %q%s", name, suggestion(name, wire.Names()))
		}
		o.Wires = append(o.Wires, name)
	}
	if !slices.ContainsFunc(o.Operations, func(op bench.Operation) bool { return op.Name == "allreduce" }) || !slices.Contains(o.Types, device.F32) {
		return usage("-wire: wire formats are for -op allreduce of -dtype f32")
	}
	return nil
}

// algorithmsOf lists the algorithms that an operation has.
func algorithmsOf(op bench.Operation) string {
	var names []string
	for _, a := range plan.Algorithms() {
		if op.Does(a.Name) {
			names = append(names, a.Name)
		}
	}
	if len(names) == 0 {
		return "; nothing has, leave it at auto"
	}
	return "; known for it: auto, " + strings.Join(names, ", ")
}

func (o *benchOptions) checkPlot() error {
	if o.plot == "" || o.plot == "-" {
		return nil
	}
	if filepath.Ext(o.plot) != ".svg" {
		return usage("-plot draws an SVG picture: name a file that ends in .svg, or - for the terminal, not %q", o.plot)
	}
	if info, err := os.Stat(filepath.Dir(o.plot)); err != nil || !info.IsDir() {
		return usage("-plot: the directory %s does not exist", filepath.Dir(o.plot))
	}
	return nil
}

// readScaling checks what a measurement of scaling needs.
func (o *benchOptions) readScaling(raw *rawBench, given map[string]bool) (err error) {
	for _, name := range []string{"op", "nproc", "sizes", "dtype", "algorithm", "wire", "pack", "private", "limit", "waiting", "plot", "warmup"} {
		if given[name] {
			return usage("-%s is for collectives; -scaling measures the training of -config at the numbers of ranks that it lists", name)
		}
	}
	if o.file == "" {
		return usage("which training shall scale? Name a configuration with -config, as in \"train bench -scaling 1,2 -config resnet.yaml\"")
	}
	for text := range strings.SplitSeq(raw.scaling, ",") {
		n, err := number("scaling", text, "numbers of ranks with commas between them, as in 1,2,4", 1, mostProcesses)
		if err != nil {
			return err
		}
		if slices.Contains(o.scaling, n) {
			return usage("-scaling has %d twice", n)
		}
		o.scaling = append(o.scaling, n)
	}
	if o.Iterations, err = number("iters", raw.iters, "the number of measured steps (0: 10)", 0, 1e6); err != nil {
		return err
	}
	o.runs, err = number("runs", raw.runs, "the number of runs of each (0: 3)", 0, 1000)
	return err
}
