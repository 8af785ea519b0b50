package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/internal/spelling"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// options are the flags of a training.
type options struct {
	config  string
	nproc   int // 0: not given
	set     []string
	summary string
	resume  bool
}

// parseOptions reads the flags. Its errors are usage errors in our words.
func parseOptions(args []string) (options, error) {
	var o options
	var nproc string
	flags := flag.NewFlagSet("train", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.config, "config", "", "")
	flags.StringVar(&nproc, "nproc", "", "")
	flags.Func("set", "", func(s string) error { o.set = append(o.set, s); return nil })
	flags.StringVar(&o.summary, "summary", "", "")
	flags.BoolVar(&o.resume, "resume", false, "")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, flagError(err, unknownOption)
	}
	if rest := flags.Args(); len(rest) > 0 {
		return o, usage("%q is no flag and belongs to none; every setting is a flag, as in \"train -config resnet.yaml -set optim.lr=0.05\"", rest[0])
	}
	if nproc != "" {
		n, err := strconv.Atoi(nproc)
		if err != nil || n < 1 || n > config.MostProcesses {
			return o, usage("-nproc is %q; it wants the number of worker processes, 1 to %d", nproc, config.MostProcesses)
		}
		o.nproc = n
	}
	if o.config == "" {
		return o, usage("which configuration? Name one with -config, as in \"train -config resnet.yaml\"")
	}
	return o, nil
}

// flagError puts an error of package flag into a sentence; unknown does so where a
// flag of that name does not exist.
func flagError(err error, unknown func(name string) error) error {
	text := err.Error()
	if name, ok := strings.CutPrefix(text, "flag provided but not defined: -"); ok {
		return unknown(name)
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		return usage("-%s wants a value", name)
	}
	return usage("%s", text)
}

func unknownOption(name string) error {
	if name == "hosts" {
		return usage("-hosts (starting processes on other hosts) is not in this version yet; start the ranks yourself with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT")
	}
	for _, key := range config.Keys() {
		if key == name || strings.HasSuffix(key, "."+name) {
			return usage("unknown flag -%s; %s is a key of the configuration: write -set %s=VALUE", name, key, key)
		}
	}
	return usage("unknown flag -%s%s", name, suggestion(name, []string{"config", "nproc", "set", "summary", "resume", "help"}))
}

func suggestion(name string, known []string) string {
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Sprintf("; known: %s", strings.Join(known, ", "))
}
