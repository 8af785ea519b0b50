package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is what an action does.
type Kind uint8

// The kinds of actions. A stage runs a micro-batch backward either by one
// Backward or by an Input and, any time later, a Weight.
const (
	Forward  Kind = iota // run the stage's blocks and keep the activations
	Backward             // both halves; the activations are freed
	Input                // the half that computes the inputs' gradients
	Weight               // the half that computes the weights' gradients; frees
	Arm                  // from here on complete gradients are released to the group
	Wait                 // collect what Arm released; the last action of a rank
	SendForward
	RecvForward
	SendBackward
	RecvBackward
)

var kindNames = [...]string{"F", "B", "I", "W", "Arm", "Wait", "SendF", "RecvF", "SendB", "RecvB"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Action is one entry of a rank's list. Its text form is stage, kind and
// micro-batch: 2F0 runs micro-batch 0 forward through stage 2, 2Arm arms stage
// 2, Wait stands alone.
type Action struct {
	Kind  Kind
	Stage int // the virtual stage; 0 for Wait
	Micro int // index of the micro-batch in this pipeline's run; 0 for Arm and Wait
}

func (a Action) String() string {
	switch a.Kind {
	case Wait:
		return a.Kind.String()
	case Arm:
		return strconv.Itoa(a.Stage) + a.Kind.String()
	}
	return strconv.Itoa(a.Stage) + a.Kind.String() + strconv.Itoa(a.Micro)
}

// completesGradient reports whether the weights' gradients are there after a.
func (a Action) completesGradient() bool { return a.Kind == Backward || a.Kind == Weight }

// ParseAction reads an action as String prints it.
func ParseAction(text string) (Action, error) {
	head := strings.TrimLeft(text, digits)
	name := strings.TrimRight(head, digits)
	stage, micro := text[:len(text)-len(head)], head[len(name):]
	kind, ok := kindNamed(name)
	if !ok {
		return Action{}, fmt.Errorf("%q is no action: want stage, kind and micro-batch, such as 2F0 (kinds: %s)", text, strings.Join(kindNames[:], " "))
	}
	if wantStage, wantMicro := kind != Wait, kind != Wait && kind != Arm; (stage != "") != wantStage || (micro != "") != wantMicro {
		return Action{}, fmt.Errorf("%q is no action: %s is written like %s", text, kind, Action{Kind: kind})
	}
	a := Action{Kind: kind}
	var err error
	if a.Stage, err = index(stage); err != nil {
		return Action{}, fmt.Errorf("%q: stage: %w", text, err)
	}
	if a.Micro, err = index(micro); err != nil {
		return Action{}, fmt.Errorf("%q: micro-batch: %w", text, err)
	}
	return a, nil
}

const digits = "0123456789"

// maxIndex bounds stages and micro-batches that are read from text.
const maxIndex = 1 << 20

func index(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > maxIndex {
		return 0, fmt.Errorf("%s is above %d", text, maxIndex)
	}
	return n, nil
}

func kindNamed(name string) (Kind, bool) {
	for i, n := range kindNames {
		if n == name {
			return Kind(i), true
		}
	}
	return 0, false
}
