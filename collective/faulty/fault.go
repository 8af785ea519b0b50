package faulty

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is what a fault does.
type Kind uint8

// The kinds of faults; the package comment explains them.
const (
	Delay Kind = iota
	Reorder
	Drop
	Corrupt
	Freeze
	Kill
)

func names() []string { return []string{"delay", "reorder", "drop", "corrupt", "freeze", "kill"} }

func (k Kind) String() string { return names()[k] }

// Fault is one thing that goes wrong.
type Fault struct {
	Rank   int
	Kind   Kind
	Peer   int // -1: any
	After  int
	Count  int // 0: all
	For    time.Duration
	Chance float64
	Seed   uint64
}

// Parse reads a fault such as "rank=1 kind=delay after=10 for=2s".
func Parse(text string) (Fault, error) {
	f := Fault{Rank: -1, Peer: -1, Count: -1, For: -1, Chance: 1, Seed: 1}
	kind := ""
	seen := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return Fault{}, fmt.Errorf("fault %q: %q is no key=value", text, word)
		}
		if seen[key] {
			return Fault{}, fmt.Errorf("fault %q: %s is given twice", text, key)
		}
		seen[key] = true
		var err error
		switch key {
		case "kind":
			kind = value
		case "rank":
			f.Rank, err = whole(value)
		case "peer":
			f.Peer, err = whole(value)
		case "after":
			f.After, err = whole(value)
		case "count":
			f.Count, err = whole(value)
		case "seed":
			f.Seed, err = strconv.ParseUint(value, 10, 64)
		case "for":
			f.For, err = time.ParseDuration(value)
			if err == nil && f.For < 0 {
				err = fmt.Errorf("a time below zero")
			}
		case "chance":
			f.Chance, err = strconv.ParseFloat(value, 64)
			if err == nil && !(f.Chance > 0 && f.Chance <= 1) {
				err = fmt.Errorf("it has to be above 0 and at most 1")
			}
		default:
			return Fault{}, fmt.Errorf("fault %q: unknown key %q; there are rank, kind, peer, after, count, for, chance and seed", text, key)
		}
		if err != nil {
			return Fault{}, fmt.Errorf("fault %q: %s=%s: %w", text, key, value, reason(err))
		}
	}
	at := slices.Index(names(), kind)
	switch {
	case f.Rank < 0:
		return Fault{}, fmt.Errorf("fault %q: it needs a rank, as in rank=1", text)
	case at < 0:
		return Fault{}, fmt.Errorf("fault %q: it needs a kind: %s", text, strings.Join(names(), ", "))
	}
	f.Kind = Kind(at)
	f.complete()
	return f, nil
}

// complete puts the kind's defaults where nothing was given.
func (f *Fault) complete() {
	if f.Count < 0 {
		f.Count = 1
		if f.Kind == Drop {
			f.Count = 0
		}
	}
	if f.For >= 0 {
		return
	}
	f.For = 0
	switch f.Kind {
	case Delay:
		f.For = 100 * time.Millisecond
	case Reorder:
		f.For = 10 * time.Millisecond
	}
}

func whole(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}

// reason leaves out what the error's text repeats.
func reason(err error) error {
	if number, ok := err.(*strconv.NumError); ok {
		if number.Err == strconv.ErrRange {
			return fmt.Errorf("out of range")
		}
		return fmt.Errorf("no number")
	}
	return err
}

// ParseAll reads several.
func ParseAll(texts []string) ([]Fault, error) {
	var faults []Fault
	for _, text := range texts {
		f, err := Parse(text)
		if err != nil {
			return nil, err
		}
		faults = append(faults, f)
	}
	return faults, nil
}

// String is the text that Parse reads.
func (f Fault) String() string {
	s := fmt.Sprintf("rank=%d kind=%v after=%d count=%d for=%v", f.Rank, f.Kind, f.After, f.Count, f.For)
	if f.Peer >= 0 {
		s += fmt.Sprintf(" peer=%d", f.Peer)
	}
	return s + fmt.Sprintf(" chance=%s seed=%d", strconv.FormatFloat(f.Chance, 'g', -1, 64), f.Seed)
}

// trigger counts the messages that a fault could hit.
type trigger struct {
	Fault
	seen, hits int
}

// next reports whether the next message is hit; everybody is peer -1.
func (g *trigger) next(peer int) bool {
	if g.Peer >= 0 && peer >= 0 && peer != g.Peer {
		return false
	}
	g.seen++
	if g.seen <= g.After || g.Count > 0 && g.hits >= g.Count || g.draw(0) >= g.Chance {
		return false
	}
	g.hits++
	return true
}

// draw is a number in [0, 1) that depends on the seed, the message and a salt.
func (g *trigger) draw(salt uint64) float64 {
	x := g.Seed*0x9e3779b97f4a7c15 + uint64(g.seen)*0xbf58476d1ce4e5b9 + salt*0x94d049bb133111eb
	for range 2 {
		x ^= x >> 31
		x *= 0xd6e8feb86659fd93
		x ^= x >> 29
	}
	return float64(x>>11) / (1 << 53)
}
