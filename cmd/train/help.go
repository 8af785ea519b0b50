package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/gradfusion/gradfusion/trainer/config"
)

// help prints one of its pages.
func (c *command) help(args []string) error {
	text := helpText
	switch page := strings.Join(args, " "); page {
	case "", "run":
	case "bench":
		text = benchHelp
	case "diag":
		text = diagHelp
	case "config":
		text = configHelp()
	default:
		return usage("there is no help on %q; there is \"train help\", \"train help bench\", \"train help diag\" and \"train help config\"", page)
	}
	_, err := io.WriteString(c.stdout, text)
	return err
}

// configHelp lists the keys in lines that a terminal does not break.
func configHelp() string {
	var b strings.Builder
	for _, s := range config.Describe() {
		fmt.Fprintf(&b, "%s: %s\n", s.Key, s.Default)
		for line := range strings.Lines(wrap(s.Meaning, width-4)) {
			b.WriteString("    " + line)
		}
	}
	return b.String()
}

const helpText = `GradFusion trains neural networks on many ranks.

    train -config FILE [-nproc N] [-set key=value]... [-summary FILE] [-resume]
    train bench [-op allreduce] [-nproc N]...    the speed of collectives
    train bench -scaling 1,2,4 -config FILE      how a training scales
    train diag -rank-table FILE [-fix OUT]       check and repair a rank table
    train data list        the data sets
    train help bench       what train bench can measure
    train help config      every key of a configuration, its default and meaning
    train version          the version of this program

FILE is looked up as given, then under configs/, then in the binary, which has
cnn.yaml, gpt.yaml, gpt-pipeline.yaml, mlp.yaml, resnet.yaml, resnet18.yaml,
resnet50.yaml, resnet152.yaml, resnet-amp.yaml, resnet-large-batch.yaml, and in
bench/ the jobs whose speed "make bench-peers" compares.

    -nproc N         start N worker processes on this host, whatever the file
                     (launch.nproc) or the environment says
    -set key=value   override a key of the file, as in -set optim.lr=0.05; may
                     be given again. GRADFUSION_SET_OPTIM_LR=0.05 does the same
    -summary FILE    write the run's figures to FILE as well
    -resume          continue from the newest checkpoint in checkpoint.dir

Exit codes: 0 done, 1 training failed, 2 wrong usage or configuration, 3 a peer
or the network failed, 130 interrupted.
`
