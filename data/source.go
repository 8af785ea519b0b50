package data

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

//go:embed files
var embedded embed.FS

// debianFashion is where Debian's package dataset-fashion-mnist puts the set.
const debianFashion = "/usr/share/datasets/fashion-mnist"

// Config is the data section of a configuration. The zero value is the
// embedded part of Fashion-MNIST, 64 samples a step, without augmentation.
type Config struct {
	Name    string `yaml:"name"`    // one of Names; default fashion-mnist
	Path    string `yaml:"path"`    // directory with the set's files; of a text its file
	Batch   int    `yaml:"batch"`   // samples of a global step; default 64
	Augment string `yaml:"augment"` // see ParseAugment; default none
	Workers int    `yaml:"workers"` // goroutines that prepare batches; default 1

	// For texts only.
	Tokens    string  `yaml:"tokens"`     // bytes, or characters (of UTF-8); default bytes
	TestShare float64 `yaml:"test_share"` // the end of a text that is kept for evaluation; default 0.1

	// For the sets synthetic and synthetic-text only.
	Channels     int `yaml:"channels"`      // default 3
	Height       int `yaml:"height"`        // default 32
	Width        int `yaml:"width"`         // default 32
	Classes      int `yaml:"classes"`       // default 10
	Vocabulary   int `yaml:"vocabulary"`    // default 256
	TrainSamples int `yaml:"train_samples"` // default 1024
	TestSamples  int `yaml:"test_samples"`  // default 256

	Context int    `yaml:"-"` // tokens of a window of text, which is the model's; default 128
	Seed    uint64 `yaml:"-"` // the run's seed; what is made up depends on it
}

// WithDefaults returns c with every zero setting replaced by its default.
func (c Config) WithDefaults() Config {
	c.Name = cmp.Or(c.Name, "fashion-mnist")
	c.Batch = cmp.Or(c.Batch, 64)
	c.Augment = cmp.Or(c.Augment, "none")
	c.Workers = cmp.Or(c.Workers, 1)
	c.Tokens, c.TestShare, c.Context = cmp.Or(c.Tokens, "bytes"), cmp.Or(c.TestShare, 0.1), cmp.Or(c.Context, 128)
	switch c.Name {
	case "synthetic":
		c.Channels, c.Height, c.Width = cmp.Or(c.Channels, 3), cmp.Or(c.Height, 32), cmp.Or(c.Width, 32)
		c.Classes = cmp.Or(c.Classes, 10)
		c.TrainSamples, c.TestSamples = cmp.Or(c.TrainSamples, 1024), cmp.Or(c.TestSamples, 256)
	case "synthetic-text":
		c.Vocabulary = cmp.Or(c.Vocabulary, 256)
		c.TrainSamples, c.TestSamples = cmp.Or(c.TrainSamples, 1024), cmp.Or(c.TestSamples, 256)
	}
	return c
}

// Source is an opened set: images, or a text.
type Source struct {
	Name        string
	Train, Test *Images  // nil for a text
	ClassNames  []string // nil when the set does not name its classes
	Text        *Text    // nil for images
	// Normalization of the training images; test images take the same one.
	Normalization Normalization
}

// Named is a set's name and a line about it.
type Named struct{ Name, About string }

type set struct {
	Named
	open func(Config) (*Source, error)
	text bool
}

// sets is the one list of what Open knows.
func sets() []set {
	return []set{
		{Named{"fashion-mnist", "28 x 28 grey clothes, 10 classes: 12,000 + 2,000 embedded images, or the IDX files in data.path"}, openFashion, false},
		{Named{"fashion-mnist-full", "all 60,000 + 10,000 images, from Debian's package dataset-fashion-mnist or data.path"}, openFashionFull, false},
		{Named{"digits", "8 x 8 grey digits, 10 classes: 1,438 + 359 embedded images (every fifth line is a test image)"}, openDigitsSet, false},
		{Named{"cifar10", "32 x 32 colour, CIFAR-10's binary files in data.path: data_batch_*.bin and test_batch.bin, or train.bin and test.bin"}, openCIFARSet, false},
		{Named{"synthetic", "made-up images of any size: data.channels, height, width, classes, train_samples, test_samples"}, openSynthetic, false},
		{Named{"bible", "text: the King James Bible, 4.2 MB embedded, as bytes or characters (data.tokens), or the file in data.path"}, openBible, true},
		{Named{"text", "text: a file of yours, in data.path"}, openText, true},
		{Named{"synthetic-text", "made-up tokens: data.vocabulary, train_samples, test_samples"}, newSyntheticText, true},
	}
}

// Names returns the sets that Open knows, each with a line of description.
func Names() []Named {
	var out []Named
	for _, s := range sets() {
		out = append(out, s.Named)
	}
	return out
}

// IsText reports whether the set of that name is a text, and no images.
func IsText(name string) bool {
	for _, s := range sets() {
		if s.Name == name {
			return s.text
		}
	}
	return false
}

// Open reads a set into memory. The error names the setting or the file, and
// for a file what was expected and found where (a *FileError).
func Open(c Config) (*Source, error) {
	c = c.WithDefaults()
	known := make([]string, 0, 8)
	for _, s := range sets() {
		known = append(known, s.Name)
		if s.Name != c.Name {
			continue
		}
		source, err := s.open(c)
		if err != nil {
			return nil, err
		}
		source.Name = c.Name
		if err := source.finish(); err != nil {
			return nil, err
		}
		return source, nil
	}
	return nil, fmt.Errorf("data.name: unknown set %q (known: %s)", c.Name, strings.Join(known, ", "))
}

// finish checks what the parsers could not see alone.
func (s *Source) finish() error {
	if s.Text != nil {
		return nil
	}
	for _, part := range []*Images{s.Train, s.Test} {
		if err := part.Check(); err != nil {
			return fmt.Errorf("data set %s: %w", s.Name, err)
		}
	}
	a, b := s.Train, s.Test
	if a.Channels != b.Channels || a.Height != b.Height || a.Width != b.Width {
		return fmt.Errorf("data set %s: training images are %d x %d x %d, test images %d x %d x %d",
			s.Name, a.Channels, a.Height, a.Width, b.Channels, b.Height, b.Width)
	}
	s.Normalization = a.Normalization()
	return nil
}

// place returns c.Path as a directory, or the embedded one when it is empty.
func (c Config) place(embeddedName string) (directory, error) {
	if c.Path == "" {
		sub, err := fs.Sub(embedded, "files/"+embeddedName)
		return directory{sub, "embedded " + embeddedName}, err
	}
	info, err := os.Stat(c.Path)
	if err != nil {
		return directory{}, fmt.Errorf("data.path: %w", err)
	}
	if !info.IsDir() {
		return directory{}, fmt.Errorf("data.path: %s is no directory; it must name the directory of the set's files", c.Path)
	}
	return directory{os.DirFS(c.Path), c.Path}, nil
}

func openFashion(c Config) (*Source, error) {
	d, err := c.place("fashion-mnist")
	if err != nil {
		return nil, err
	}
	train, test, err := openIDX(d, 10)
	return &Source{Train: train, Test: test, ClassNames: fashionNames()}, err
}

func fashionNames() []string {
	return []string{"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"}
}

func openFashionFull(c Config) (*Source, error) {
	debian := c.Path == ""
	if debian {
		c.Path = debianFashion
	}
	source, err := openFashion(c)
	if debian && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("data.name: fashion-mnist-full: %s is not there: install Debian's package dataset-fashion-mnist, "+
			"or let data.path name a directory with the four IDX files: %w", debianFashion, err)
	}
	return source, err
}

func openDigitsSet(c Config) (*Source, error) {
	d, err := c.place("digits")
	if err != nil {
		return nil, err
	}
	train, test, err := openDigits(d)
	return &Source{Train: train, Test: test}, err
}

func openCIFARSet(c Config) (*Source, error) {
	if c.Path == "" {
		return nil, errors.New("data.path: cifar10 is not embedded: name the directory with data_batch_*.bin and test_batch.bin")
	}
	d, err := c.place("")
	if err != nil {
		return nil, err
	}
	train, test, names, err := openCIFAR(d)
	return &Source{Train: train, Test: test, ClassNames: names}, err
}

func openSynthetic(c Config) (*Source, error) {
	if c.Path != "" {
		return nil, errors.New("data.path: the set synthetic is made up and reads no files")
	}
	train, err := newSynthetic(c, 0, c.TrainSamples)
	if err != nil {
		return nil, err
	}
	test, err := newSynthetic(c, 1, c.TestSamples)
	return &Source{Train: train, Test: test}, err
}
