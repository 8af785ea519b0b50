package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/gradfusion/gradfusion/internal/spelling"
)

// variablePrefix starts the name of every variable that sets a key.
const variablePrefix = "GRADFUSION_SET_"

// variable is the name that sets a key: optim.lr becomes GRADFUSION_SET_OPTIM_LR.
func variable(key string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// setFromEnvironment applies the variables in the order of their names.
func (c *Config) setFromEnvironment(environ []string) error {
	keys := append(Keys(), "fusion.wire", "optim.schedule", "collective.tls")
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = variable(key)
	}
	var given []string
	for _, v := range environ {
		if strings.HasPrefix(v, variablePrefix) {
			given = append(given, v)
		}
	}
	slices.Sort(given)
	for _, assignment := range given {
		name, value, _ := strings.Cut(assignment, "=")
		at := Position{Given: assignment, source: fromVariables}
		i := slices.Index(names, name)
		if i < 0 {
			reason := fmt.Sprintf("the variable %s sets no known key", name)
			if near := spelling.Nearest(strings.TrimPrefix(name, variablePrefix), trimAll(names, variablePrefix)); near != "" {
				reason += "; did you mean " + variablePrefix + near + "?"
			}
			return &Error{At: Position{Given: quoteless(assignment)}, Reason: reason}
		}
		if err := c.set(keys[i], value, at); err != nil {
			return err
		}
	}
	return nil
}

func trimAll(names []string, prefix string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.TrimPrefix(name, prefix)
	}
	return out
}

// setFromFlag applies one -set value.
func (c *Config) setFromFlag(assignment string) error {
	at := Position{Given: "-set " + quoteless(assignment), source: fromFlags}
	key, value, ok := strings.Cut(assignment, "=")
	if !ok {
		return &Error{At: at, Reason: "-set wants key=value, such as -set optim.lr=0.05"}
	}
	return c.set(strings.TrimSpace(key), value, at)
}

// set gives the key the value that a YAML text stands for. A key for a text
// takes the text as it is, unless it is in quotes.
func (c *Config) set(key, value string, at Position) error {
	at.Given = quoteless(at.Given)
	d := &decoder{config: c, place: func(int, int) Position { return at }}
	v := reflect.ValueOf(c).Elem()
	section := ""
	for name := range strings.SplitSeq(key, ".") {
		if !isSection(v) {
			return &Error{Key: key, At: at, Reason: fmt.Sprintf("%s has no keys below it; it wants %s", section, wants(v))}
		}
		field, ok := fieldOf(v, name)
		if !ok {
			return &Error{Key: key, At: at, Reason: unknownKey(section, name, keysOf(v.Type()))}
		}
		section, v = join(section, name), field
	}
	if v.Kind() == reflect.String && !strings.HasPrefix(value, `"`) && !strings.HasPrefix(value, "'") {
		if err := setScalar(v, value, false); err != nil {
			return &Error{Key: key, At: at, Reason: fmt.Sprintf("%s wants a text in UTF-8", key)}
		}
		c.positions[key] = at
		return nil
	}
	root, err := d.parse([]byte(value))
	if err != nil {
		return err
	}
	if _, null := root.(*ast.NullNode); root == nil || null {
		return &Error{Key: key, At: at, Reason: fmt.Sprintf("%s has no value; it wants %s", key, wants(v))}
	}
	return d.value(key, root, v)
}
