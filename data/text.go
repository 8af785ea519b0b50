package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Text is a text as tokens, in two parts, and how it is cut into windows.
type Text struct {
	Train, Test Tokens
	Vocabulary  int    // tokens are 0 to Vocabulary - 1
	Context     int    // tokens of a window
	Characters  []rune // what each token stands for; nil where tokens are bytes
}

// openBible reads the King James Bible, which is embedded, or data.path.
func openBible(c Config) (*Source, error) {
	if c.Path != "" {
		return openText(c)
	}
	d, err := c.place("bible")
	if err != nil {
		return nil, err
	}
	return readText(c, d, "kjv.txt.gz")
}

func openText(c Config) (*Source, error) {
	if c.Path == "" {
		return nil, errors.New("data.path: the set text is a file of yours: name it, as in data.path: novel.txt")
	}
	info, err := os.Stat(c.Path)
	if err != nil {
		return nil, fmt.Errorf("data.path: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("data.path: %s is a directory; it must name a text file", c.Path)
	}
	folder := filepath.Dir(c.Path)
	return readText(c, directory{os.DirFS(folder), folder}, filepath.Base(c.Path))
}

// mostText bounds the bytes of a text, which is held in memory: a small gzip
// file may unpack to more than any host has.
const mostText = 4 << 30

// readText reads a file, packed with gzip or not, and cuts it in two.
func readText(c Config, d directory, name string) (*Source, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.close()
	text, err := f.whole(mostText)
	if err != nil {
		return nil, err
	}
	out, err := parseText(c, f.path, text)
	if err != nil {
		return nil, err
	}
	return &Source{Text: out}, nil
}

// parseText makes tokens of the content of the file path.
func parseText(c Config, path string, text []byte) (*Text, error) {
	out := &Text{Context: c.Context}
	if len(text) == 0 {
		return nil, &FileError{Path: path, Offset: -1, Record: -1, Expected: "text", Found: "an empty file"}
	}
	var all Tokens
	switch c.Tokens {
	case "bytes":
		all, out.Vocabulary = Tokens{bytes: text}, 256
	case "characters":
		var err error
		if out.Characters, all, err = characters(path, text); err != nil {
			return nil, err
		}
		out.Vocabulary = len(out.Characters)
	default:
		return nil, fmt.Errorf("data.tokens: %q is neither bytes nor characters", c.Tokens)
	}
	test := int(c.TestShare * float64(all.Len()))
	out.Train, out.Test = all.split(all.Len() - test)
	if out.Train.Len() < c.Context+1 || out.Test.Len() < 2 {
		return nil, fmt.Errorf("model.context: %d is too long for %s: its %d tokens, of which data.test_share leaves %d to train and %d to evaluate, have to be %d (a window, and the token after it) and 2 at least",
			c.Context, path, all.Len(), out.Train.Len(), out.Test.Len(), c.Context+1)
	}
	return out, nil
}

// newSyntheticText makes windows of made-up tokens. Half of them follow from the
// token before, so that a network can learn something; the others are drawn.
// Everything is a pure function of (seed, part).
func newSyntheticText(c Config) (*Source, error) {
	if c.Path != "" {
		return nil, errors.New("data.path: the set synthetic-text is made up and reads no files")
	}
	if c.Vocabulary < 2 || c.Vocabulary > mostCharacters {
		return nil, fmt.Errorf("data.vocabulary: %d is out of range: expected 2 to %d", c.Vocabulary, mostCharacters)
	}
	parts := [2]Tokens{}
	for part, v := range []struct {
		key     string
		samples int
	}{{"data.train_samples", c.TrainSamples}, {"data.test_samples", c.TestSamples}} {
		if v.samples < 1 || uint64(v.samples) > syntheticLimit/2/uint64(c.Context) {
			return nil, fmt.Errorf("%s: %d made-up windows of %d tokens: expected at least one and at most %d GiB",
				v.key, v.samples, c.Context, syntheticLimit>>30)
		}
		parts[part] = drawTokens(c, uint64(part), v.samples*c.Context+1)
	}
	return &Source{Text: &Text{Train: parts[0], Test: parts[1], Vocabulary: c.Vocabulary, Context: c.Context}}, nil
}

func drawTokens(c Config, part uint64, n int) Tokens {
	random := newStream(randomText, c.Seed, part, 0)
	out := make([]uint16, n)
	token := uint64(0)
	for i := range out {
		if random.next()>>63 == 0 {
			token = random.below(uint64(c.Vocabulary))
		} else {
			token = (5*token + 1) % uint64(c.Vocabulary)
		}
		out[i] = uint16(token)
	}
	return Tokens{wide: out}
}
