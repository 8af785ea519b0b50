package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// String is the plan as text, which Parse reads: a line that names the sizes,
// then a line per round. A move is from:chunk>to:chunk, then xN for N chunks and
// + for a reduction:
//
//	plan 2 ranks 2 chunks
//	0:1>1:1+ 1:0>0:0+
//	0:0>1:0 1:1>0:1
//
// A round without moves is a lone dash.
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan %d ranks %d chunks\n", p.Ranks, p.Chunks)
	for round := range p.Rounds {
		for i, m := range round {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(m.String())
		}
		if len(round) == 0 {
			b.WriteByte('-')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (m Move) String() string {
	s := fmt.Sprintf("%d:%d>%d:%d", m.From, m.Src, m.To, m.Dst)
	if m.N != 1 {
		s += "x" + strconv.Itoa(m.N)
	}
	if m.Reduce {
		s += "+"
	}
	return s
}

// parseLimit bounds the numbers in a plan's text, so that a stray digit cannot
// ask for terabytes in Check.
const parseLimit = 1 << 20

// Parse reads a plan's text. Blank lines and lines that start with # count for
// nothing. Errors name the line.
func Parse(text string) (Plan, error) {
	var rounds []Round
	ranks, chunks := 0, 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if ranks == 0 {
			if _, err := fmt.Sscanf(line, "plan %d ranks %d chunks", &ranks, &chunks); err != nil {
				return Plan{}, fmt.Errorf("line %d: %q is not \"plan N ranks N chunks\"", i+1, line)
			}
			if ranks < 1 || ranks > parseLimit || chunks < 1 || chunks > parseLimit {
				return Plan{}, fmt.Errorf("line %d: %d ranks, %d chunks: outside 1..%d", i+1, ranks, chunks, parseLimit)
			}
			continue
		}
		round, err := parseRound(line, ranks, chunks)
		if err != nil {
			return Plan{}, fmt.Errorf("line %d: %w", i+1, err)
		}
		rounds = append(rounds, round)
	}
	if ranks == 0 {
		return Plan{}, fmt.Errorf("an empty text is no plan")
	}
	return Of(ranks, chunks, rounds...), nil
}

func parseRound(line string, ranks, chunks int) (Round, error) {
	round := Round{}
	if line == "-" {
		return round, nil
	}
	for _, word := range strings.Fields(line) {
		m, err := parseMove(word)
		if err == nil {
			err = m.fits(ranks, chunks)
		}
		if err != nil {
			return nil, fmt.Errorf("move %q: %w", word, err)
		}
		round = append(round, m)
	}
	return round, nil
}

func parseMove(word string) (Move, error) {
	m := Move{N: 1}
	rest, reduce := strings.CutSuffix(word, "+")
	m.Reduce = reduce
	from, to, ok := strings.Cut(rest, ">")
	if !ok {
		return m, fmt.Errorf("want from:chunk>to:chunk")
	}
	to, n, many := strings.Cut(to, "x")
	fields := []struct {
		text string
		into [2]*int
	}{{from, [2]*int{&m.From, &m.Src}}, {to, [2]*int{&m.To, &m.Dst}}}
	for _, f := range fields {
		rank, chunk, ok := strings.Cut(f.text, ":")
		if !ok {
			return m, fmt.Errorf("%q is not rank:chunk", f.text)
		}
		for i, s := range []string{rank, chunk} {
			v, err := parseNumber(s)
			if err != nil {
				return m, err
			}
			*f.into[i] = v
		}
	}
	if many {
		v, err := parseNumber(n)
		if err != nil {
			return m, err
		}
		m.N = v
	}
	return m, nil
}

func parseNumber(s string) (int, error) {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil || v > parseLimit {
		return 0, fmt.Errorf("%q is no number up to %d", s, parseLimit)
	}
	return int(v), nil
}
