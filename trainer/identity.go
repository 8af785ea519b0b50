package trainer

import (
	"fmt"
	"strconv"
	"strings"
)

// identity is what should be equal for a run to be continued to the same result.
func (s *session) identity() []entry {
	c := s.cfg
	return []entry{
		{"model", s.model.Name, "model.name"},
		{"optimizer", c.Optim.Name, "optim.name"},
		{"data", s.data.Name, "data.name"},
		{"batch", strconv.Itoa(c.Data.Batch), "data.batch"},
		{"seed", strconv.FormatUint(c.Train.Seed, 10), "train.seed"},
		{keyTraining, s.contents[0], ""},
		{keyTest, s.contents[1], ""},
		{keySteps, strconv.Itoa(s.total), ""},
	}
}

// entry is one of a checkpoint's metadata, and the key of the configuration that
// decides on it.
type entry struct{ key, value, setting string }

// Keys of the metadata: what the data were, the steps of the run, and its
// settings, a line each.
const (
	keyTraining = "training set"
	keyTest     = "test set"
	keySteps    = "steps"
	keySettings = "settings"
)

// matches refuses a checkpoint that this run cannot continue.
func (s *session) matches(path string, metadata map[string]string) error {
	for _, i := range s.identity() {
		got, known := metadata[i.key]
		switch {
		case got == i.value:
		case !known && (i.key == keyTraining || i.key == keyTest): // written before they were kept
		case i.key == keyTest:
			s.warnings = append(s.warnings, fmt.Sprintf("the test set has changed since %s was written, so evaluations before and after it do not compare: it was %s, it is %s", path, got, i.value))
		case i.key == keyTraining:
			return s.cfg.Errorf("data.name", "the training set has changed since checkpoint %s was written: it was %s, it is %s; continue with the data that it was trained on, or start afresh in another checkpoint.dir", path, got, i.value)
		case i.key == keySteps:
			s.warnings = append(s.warnings, fmt.Sprintf("the run that wrote %s was to have %s steps, this one has %s: the learning rate follows the new number", path, got, i.value))
		default:
			return s.cfg.Errorf(i.setting, "%s is %s, and checkpoint %s is of a run with %s; -resume continues with the same setting, or start afresh in another checkpoint.dir", i.setting, i.value, path, got)
		}
	}
	changes := changed(metadata[keySettings], s.settings())
	for _, c := range changes {
		if strings.HasPrefix(c, "model.heads ") { // all other networks have weights of other shapes
			return s.cfg.Errorf("model.heads", "checkpoint %s is of another network: %s; continue with the same one, or start afresh in another checkpoint.dir", path, c)
		}
	}
	if len(changes) > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("the run that wrote %s had other settings, so this one continues it differently: %s", path, strings.Join(changes, ", ")))
	}
	return nil
}

// changed lists settings that are not as they were. What only says how long and
// how often, or computes the same, is no change.
func changed(then string, now []string) []string {
	old := map[string]string{}
	for line := range strings.Lines(then) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		old[key] = value
	}
	var out []string
	for _, line := range now {
		key, value, _ := strings.Cut(line, ": ")
		switch was, known := old[key]; {
		case !known || was == value, key == "train.epochs", key == "train.steps", key == "train.eval_every", key == "observe.trace", key == "model.recompute", key == "parallel.recompute", key == "launch.placement", key == "parallel.shard_optimizer":
		default:
			out = append(out, fmt.Sprintf("%s is %s, was %s", key, value, was))
		}
	}
	return out
}
