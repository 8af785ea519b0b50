package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/gradfusion/gradfusion/internal/spelling"
)

// Sources is what Load reads beside the file. The zero value is nothing.
type Sources struct {
	Embedded fs.FS    // copies to fall back on
	Environ  []string // NAME=value, as os.Environ gives it
	Set      []string // key=value, as given to -set
}

// mostBytes and mostIncludes bound what one run may read.
const (
	mostBytes    = 256 << 10
	mostIncludes = 16
)

// Load returns the checked settings: defaults, then the file and what it
// includes, then variables, then -set values, the later ones winning. The name
// is looked up as given, then under configs/, then among the embedded files; an
// empty name is no file. The error is an *Error.
func Load(name string, from Sources) (*Config, error) {
	c := Default()
	c.positions = make(map[string]Position)
	if name != "" {
		f, err := find(name, from.Embedded)
		if err != nil {
			return nil, err
		}
		c.file = f.shown
		if err := c.readFile(f, nil); err != nil {
			return nil, err
		}
	}
	if err := c.setFromEnvironment(from.Environ); err != nil {
		return nil, err
	}
	for _, assignment := range from.Set {
		if err := c.setFromFlag(assignment); err != nil {
			return nil, err
		}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// Read is Load for a text that is no file; name stands in errors, and it may
// include files of the working directory.
func Read(name string, text []byte) (*Config, error) {
	c := Default()
	c.positions = make(map[string]Position)
	c.file = name
	f := file{shown: name, identity: name, folder: ".", read: func() ([]byte, error) { return text, nil }}
	if err := c.readFile(f, nil); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// file is a configuration file that was found.
type file struct {
	shown    string // in messages
	identity string // equal for the same file
	folder   string // that includes are relative to
	embedded fs.FS  // nil: the file system
	read     func() ([]byte, error)
}

func onDisk(name string) file {
	identity := name
	if absolute, err := filepath.Abs(name); err == nil {
		identity = absolute
	}
	if real, err := filepath.EvalSymlinks(identity); err == nil {
		identity = real
	}
	return file{shown: name, identity: identity, folder: filepath.Dir(name),
		read: func() ([]byte, error) { return readBounded(os.DirFS(filepath.Dir(name)), filepath.Base(name)) }}
}

func inBinary(files fs.FS, name string) file {
	return file{shown: "embedded:" + name, identity: "embedded:" + name, folder: path.Dir(name), embedded: files,
		read: func() ([]byte, error) { return readBounded(files, name) }}
}

func readBounded(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("this is a directory; a configuration is a YAML file")
	}
	if info.Size() > mostBytes {
		return nil, fmt.Errorf("the file has %d bytes, which is too much for a configuration (at most %d)", info.Size(), mostBytes)
	}
	return fs.ReadFile(files, name)
}

// find looks a name up as given, under configs/, and among the embedded files.
func find(name string, embedded fs.FS) (file, error) {
	tried := []string{name}
	if _, err := os.Stat(name); err == nil {
		return onDisk(name), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return file{}, &Error{At: Position{File: name}, Reason: "the configuration cannot be opened: " + cause(err).Error(), Err: err}
	}
	if !filepath.IsAbs(name) {
		below := filepath.Join("configs", name)
		if _, err := os.Stat(below); err == nil {
			return onDisk(below), nil
		}
		tried = append(tried, below)
	}
	if embedded == nil {
		return file{}, notFound(name, tried, nil)
	}
	within := strings.TrimPrefix(path.Clean(filepath.ToSlash(name)), "configs/")
	if fs.ValidPath(within) {
		if _, err := fs.Stat(embedded, within); err == nil {
			return inBinary(embedded, within), nil
		}
	}
	known, _ := fs.Glob(embedded, "*.yaml")
	deeper, _ := fs.Glob(embedded, "*/*.yaml")
	return file{}, notFound(name, tried, append(known, deeper...))
}

func notFound(name string, tried, embedded []string) error {
	reason := "there is no such configuration; looked for " + strings.Join(tried, " and ")
	if len(embedded) > 0 {
		reason += ", and the binary holds " + strings.Join(embedded, ", ")
		if near := nearestFile(name, embedded); near != "" {
			reason += "; did you mean " + near + "?"
		}
	}
	return &Error{At: Position{File: name}, Reason: reason, Err: fs.ErrNotExist}
}

// nearestFile finds the file that was meant, by its folder and name or by its
// name alone.
func nearestFile(name string, embedded []string) string {
	name = strings.TrimPrefix(path.Clean(filepath.ToSlash(name)), "configs/")
	name = strings.TrimSuffix(name, path.Ext(name)) + ".yaml"
	if near := spelling.Nearest(name, embedded); near != "" {
		return near
	}
	return spelling.Nearest(path.Base(name), embedded)
}

// cause strips operation and path off a file error: the message names them.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Sources after the files, of which there are fewer.
const (
	fromVariables = 1<<20 + iota
	fromFlags
)

// readFile decodes what f includes and then f. The chain holds the files that
// are being read.
func (c *Config) readFile(f file, chain []string) error {
	text, err := f.read()
	if err != nil {
		return &Error{At: Position{File: f.shown}, Reason: "the configuration cannot be read: " + cause(err).Error(), Err: err}
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"), "\n")
	source := 0
	d := &decoder{config: c, place: func(line, column int) Position {
		p := Position{File: f.shown, Line: line, Column: column, source: source}
		if line >= 1 && line <= len(lines) {
			p.Text = lines[line-1]
		}
		return p
	}}
	root, err := d.parse(text)
	if err != nil || root == nil {
		return err
	}
	top, ok := root.(*ast.MappingNode)
	if !ok {
		return d.errorf(root, "", "the file is %s; a configuration is a mapping such as \"optim: {lr: 0.1}\"", describe(root))
	}
	if err := c.readIncludes(d, f, top, append(slices.Clip(chain), f.identity)); err != nil {
		return err
	}
	c.files++
	source = c.files
	return d.mapping("", top, reflect.ValueOf(c).Elem())
}

// readIncludes reads the files that the key include names, in order.
func (c *Config) readIncludes(d *decoder, f file, top *ast.MappingNode, chain []string) error {
	for _, entry := range top.Values {
		if name, ok := keyText(entry.Key); !ok || name != "include" {
			continue
		}
		nodes := []ast.Node{entry.Value}
		if list, ok := entry.Value.(*ast.SequenceNode); ok {
			nodes = list.Values
		}
		for _, node := range nodes {
			name, ok := scalarText(node)
			if !ok || name == "" {
				return d.errorf(node, "include", "include is %s; it wants a file name or a list of them", describe(node))
			}
			other, err := f.include(name)
			if err != nil {
				return d.errorf(node, "include", "the included file %s cannot be opened: %v", other.shown, cause(err))
			}
			if slices.Contains(chain, other.identity) || len(chain) > mostIncludes {
				return d.errorf(node, "include", "%s includes itself, directly or through others", other.shown)
			}
			if err := c.readFile(other, chain); err != nil {
				return err
			}
		}
	}
	return nil
}

// include finds a file relative to f.
func (f file) include(name string) (file, error) {
	if f.embedded != nil {
		other := inBinary(f.embedded, path.Join(f.folder, name))
		_, err := fs.Stat(f.embedded, path.Join(f.folder, name))
		return other, err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(f.folder, name)
	}
	_, err := os.Stat(name)
	return onDisk(name), err
}
