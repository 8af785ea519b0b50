package models

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/internal/spelling"
	"github.com/gradfusion/gradfusion/nn"
)

// entry is one line of the list of models.
type entry struct {
	name  string
	build func(Config) ([]nn.Block, error)
}

// list is every model: one line each.
func list() []entry {
	return []entry{
		{"mlp", mlp},
		{"cnn", cnn},
		{"resnet20", cifar(3)},
		{"resnet32", cifar(5)},
		{"resnet44", cifar(7)},
		{"resnet56", cifar(9)},
		{"resnet110", cifar(18)},
		{"resnet18", imagenet(basic, 2, 2, 2, 2)},
		{"resnet34", imagenet(basic, 3, 4, 6, 3)},
		{"resnet50", imagenet(bottleneck, 3, 4, 6, 3)},
		{"resnet101", imagenet(bottleneck, 3, 4, 23, 3)},
		{"resnet152", imagenet(bottleneck, 3, 8, 36, 3)},
	}
}

// Names lists the models that New knows.
func Names() []string {
	var names []string
	for _, e := range list() {
		names = append(names, e.name)
	}
	return names
}

func find(name string) (func(Config) ([]nn.Block, error), error) {
	names := Names()
	if name == "" {
		return nil, errors.New("no model is named (known: " + strings.Join(names, ", ") + ")")
	}
	for _, e := range list() {
		if e.name == name {
			return e.build, nil
		}
	}
	return nil, fmt.Errorf("unknown model %q%s (known: %s)", name, spelling.DidYouMean(name, names), strings.Join(names, ", "))
}
