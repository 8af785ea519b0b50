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
	text  bool // reads tokens, and no images
}

// list is every model: one line each.
func list() []entry {
	return []entry{
		{"mlp", mlp, false},
		{"cnn", cnn, false},
		{"resnet20", cifar(3), false},
		{"resnet32", cifar(5), false},
		{"resnet44", cifar(7), false},
		{"resnet56", cifar(9), false},
		{"resnet110", cifar(18), false},
		{"resnet18", imagenet(basic, 2, 2, 2, 2), false},
		{"resnet34", imagenet(basic, 3, 4, 6, 3), false},
		{"resnet50", imagenet(bottleneck, 3, 4, 6, 3), false},
		{"resnet101", imagenet(bottleneck, 3, 4, 23, 3), false},
		{"resnet152", imagenet(bottleneck, 3, 8, 36, 3), false},
		{"gpt", gpt, true},
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

// TakesText reports whether the model of that name reads tokens, and no images.
func TakesText(name string) bool {
	for _, e := range list() {
		if e.name == name {
			return e.text
		}
	}
	return false
}

func find(name string) (entry, error) {
	names := Names()
	if name == "" {
		return entry{}, errors.New("no model is named (known: " + strings.Join(names, ", ") + ")")
	}
	for _, e := range list() {
		if e.name == name {
			return e, nil
		}
	}
	return entry{}, fmt.Errorf("unknown model %q%s (known: %s)", name, spelling.DidYouMean(name, names), strings.Join(names, ", "))
}
