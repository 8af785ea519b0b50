package data

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func textConfig(change func(*Config)) Config {
	c := Config{Name: "text", Context: 4}
	change(&c)
	return c
}

// spell returns tokens as text.
func spell(t *Text, tokens Tokens) string {
	var b strings.Builder
	for i := range tokens.Len() {
		if t.Characters == nil {
			b.WriteByte(byte(tokens.At(i)))
		} else {
			b.WriteRune(t.Characters[tokens.At(i)])
		}
	}
	return b.String()
}

func TestBible(t *testing.T) {
	s, err := Open(Config{Name: "bible"})
	require.NoError(t, err)
	require.Equal(t, Shape{Vocabulary: 256, Context: 128}, s.Shape())
	text := spell(s.Text, s.Text.Train) + spell(s.Text, s.Text.Test)
	require.Equal(t, "c07e6fc01c47384361958436fb5a05b95496362d231de6274e378df2bfe6fbc3", fmt.Sprintf("%x", sha256.Sum256([]byte(text))))
	require.True(t, strings.HasPrefix(text, "Genesis 1\n\n1 In the beginning God created"))
	require.Equal(t, 423603, s.Text.Test.Len(), "a tenth, rounded down")

	characters, err := Open(Config{Name: "bible", Tokens: "characters"})
	require.NoError(t, err)
	require.Equal(t, 73, characters.Text.Vocabulary)
	require.Equal(t, spell(s.Text, s.Text.Test), spell(characters.Text, characters.Text.Test))

	train, test := s.Describe()
	require.Equal(t, "3812428 tokens of 256, c87cfe9a", train)
	require.Contains(t, test, "423603 tokens of 256, ")
}

func TestTextFile(t *testing.T) {
	folder := t.TempDir()
	text := "Grüße, 世界! " + strings.Repeat("abc ", 20)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "my.txt"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "my.txt.gz"), pack([]byte(text)), 0o600))
	for _, name := range []string{"my.txt", "my.txt.gz"} {
		for _, tokens := range []string{"bytes", "characters"} {
			s, err := Open(textConfig(func(c *Config) {
				c.Path, c.Tokens, c.TestShare = filepath.Join(folder, name), tokens, 0.25
			}))
			require.NoError(t, err)
			require.Equal(t, text, spell(s.Text, s.Text.Train)+spell(s.Text, s.Text.Test))
			require.Equal(t, (s.Text.Train.Len()+s.Text.Test.Len())/4, s.Text.Test.Len())
		}
	}
	t.Chdir(folder)
	s, err := Open(textConfig(func(c *Config) { c.Name, c.Path = "bible", "my.txt" }))
	require.NoError(t, err)
	require.Equal(t, len(text), s.Text.Train.Len()+s.Text.Test.Len(), "a path wins over the embedded text")
}

// A text of more than 256 characters is kept in 16 bits.
func TestManyCharacters(t *testing.T) {
	var b strings.Builder
	for r := rune(0x4e00); r < 0x4e00+600; r++ {
		b.WriteRune(r)
	}
	out, err := parseText(textConfig(func(c *Config) { c.Tokens, c.TestShare = "characters", 0.1 }), "x", []byte(b.String()))
	require.NoError(t, err)
	require.Equal(t, 600, out.Vocabulary)
	require.Equal(t, []int{540, 60}, []int{out.Train.Len(), out.Test.Len()})
	require.Equal(t, b.String(), spell(out, out.Train)+spell(out, out.Test))
}

func TestTextMistakes(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for name, text := range map[string]string{"empty": "", "short": "abcd", "brief": "abcdefgh", "latin1": "gr\xfc\xdfe, gr\xfc\xdfe, gr\xfc\xdfe", "torn.gz": "\x1f\x8b\x08\x00"} {
		require.NoError(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	whole := pack([]byte(strings.Repeat("abc", 100)))
	require.NoError(t, os.WriteFile(at("cut.gz"), whole[:len(whole)-6], 0o600))
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) {}, "data.path: the set text is a file of yours: name it, as in data.path: novel.txt"},
		{func(c *Config) { c.Path = at("missing") }, "data.path: stat " + at("missing") + ": no such file or directory"},
		{func(c *Config) { c.Path = folder }, "data.path: " + folder + " is a directory; it must name a text file"},
		{func(c *Config) { c.Path = "/dev/null" }, "data.path: /dev/null is no file but a pipe or device"},
		{func(c *Config) { c.Path = at("empty") }, "data: " + at("empty") + ": expected text, found an empty file"},
		{func(c *Config) { c.Path = at("short") }, "model.context: 4 is too long for " + at("short") + ": its 4 tokens, of which data.test_share leaves 4 to train and 0 to evaluate, have to be 5 (a window, and the token after it) and 2 at least"},
		{func(c *Config) { c.Path, c.TestShare = at("brief"), 0.5 }, "its 8 tokens, of which data.test_share leaves 4 to train and 4 to evaluate"},
		{func(c *Config) { c.Path, c.Tokens = at("latin1"), "characters" }, "data: " + at("latin1") + ", byte 2: expected UTF-8 text, as data.tokens: characters asks for, found byte 0xfc"},
		{func(c *Config) { c.Path = at("torn.gz") }, "expected gzip data"},
		{func(c *Config) { c.Path = at("cut.gz") }, "expected text, found damaged data: unexpected EOF"},
		{func(c *Config) { c.Path, c.Tokens = at("brief"), "words" }, `data.tokens: "words" is neither bytes nor characters`},
		{func(c *Config) { c.Name, c.Path = "synthetic-text", "x" }, "data.path: the set synthetic-text is made up and reads no files"},
		{func(c *Config) { c.Name, c.Vocabulary = "synthetic-text", 1 }, "data.vocabulary: 1 is out of range: expected 2 to 65536"},
		{func(c *Config) { c.Name, c.TestSamples = "synthetic-text", 1<<40 }, "data.test_samples: 1099511627776 made-up windows of 4 tokens"},
	} {
		_, err := Open(textConfig(c.change))
		require.ErrorContains(t, err, c.want)
	}
}

func TestSyntheticTextIsAFunctionOfTheSeed(t *testing.T) {
	made := func(seed uint64) *Text {
		s, err := Open(Config{Name: "synthetic-text", Context: 8, Vocabulary: 300, TrainSamples: 50, TestSamples: 3, Seed: seed})
		require.NoError(t, err)
		return s.Text
	}
	a := made(1)
	require.Equal(t, []int{401, 25}, []int{a.Train.Len(), a.Test.Len()}, "windows, and the last target")
	follow := 0
	for i := 1; i < a.Train.Len(); i++ {
		require.Less(t, a.Train.At(i), int32(300))
		if a.Train.At(i) == (5*a.Train.At(i-1)+1)%300 {
			follow++
		}
	}
	require.InDelta(t, 200, follow, 40) // four deviations of a fixed seed
	require.Equal(t, a, made(1))
	require.NotEqual(t, a, made(2))
}

func FuzzText(f *testing.F) {
	f.Add([]byte("In the beginning"), uint8(4), true)
	f.Add([]byte("gr\xfc\xdfe"), uint8(1), true)
	f.Add([]byte{}, uint8(0), false)
	f.Fuzz(func(t *testing.T, b []byte, context uint8, wide bool) {
		c := Config{Tokens: "bytes", TestShare: 0.2, Context: int(context) + 1}
		if wide {
			c.Tokens = "characters"
		}
		out, err := parseText(c, "fuzz", b)
		if err != nil && strings.HasPrefix(err.Error(), "model.context: ") {
			return // too short for a window
		}
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		require.Equal(t, string(b), spell(out, out.Train)+spell(out, out.Test))
		for _, part := range []Tokens{out.Train, out.Test} {
			for i := range part.Len() {
				require.Less(t, part.At(i), int32(out.Vocabulary))
			}
		}
	})
}

// locked is a folder whose files may not be read.
type locked struct{}

func (locked) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestUnreadableText(t *testing.T) {
	_, err := readText(textConfig(func(*Config) {}), directory{locked{}, "/home/other"}, "diary.txt")
	require.EqualError(t, err, "data.path: open /home/other/diary.txt: permission denied")
	require.ErrorIs(t, err, fs.ErrPermission)
}

// TestTextTooLarge: of a packed file only as much is read as may be held.
func TestTextTooLarge(t *testing.T) {
	for _, name := range []string{"a.txt", "a.txt.gz"} {
		for _, n := range []int{1000, 1001, 100_000} {
			content := bytes.Repeat([]byte("x"), n)
			if strings.HasSuffix(name, ".gz") {
				content = pack(content)
			}
			f, err := newReader(name, bytes.NewReader(content), int64(len(content)))
			require.NoError(t, err)
			text, err := f.whole(1000)
			if n <= 1000 {
				require.NoError(t, err)
				require.Len(t, text, n)
				continue
			}
			require.ErrorContains(t, err, "data: "+name)
			require.ErrorContains(t, err, "expected a text of at most 1000 bytes")
			require.LessOrEqual(t, f.offset, int64(1001))
		}
	}
}
