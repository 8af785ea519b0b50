package data

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

const (
	digitsSide  = 8
	digitsMax   = 16 // grey values run from 0 to 16
	digitsLimit = 1 << 20
)

// openDigits reads digits.csv and splits it: every fifth line (4, 9, 14, ...)
// is a test sample, the others train.
func openDigits(d directory) (train, test *Images, err error) {
	f, err := d.open("digits.csv.gz", "digits.csv")
	if err != nil {
		return nil, nil, err
	}
	defer f.close()
	all, err := parseDigits(f)
	if err != nil {
		return nil, nil, err
	}
	if all.Len() < 5 {
		return nil, nil, f.fail(-1, "at least 5 lines, to have one test sample", fmt.Sprint(all.Len()), nil)
	}
	train, test = newDigits(), newDigits()
	for i, label := range all.Labels {
		part := train
		if i%5 == 4 {
			part = test
		}
		part.Pixels = append(part.Pixels, all.Sample(i)...)
		part.Labels = append(part.Labels, label)
	}
	return train, test, nil
}

func newDigits() *Images {
	return &Images{Channels: 1, Height: digitsSide, Width: digitsSide, Classes: 10}
}

// parseDigits reads lines of 64 grey values and a label, separated by commas.
// A grey value v becomes the pixel 15 v, so that pixels use the byte's range.
func parseDigits(f *file) (*Images, error) {
	out := newDigits()
	lines := bufio.NewScanner(f.reader)
	for lines.Scan() {
		text := lines.Text()
		if len(out.Labels) == digitsLimit {
			return nil, f.fail(len(out.Labels), fmt.Sprintf("at most %d lines", digitsLimit), "more", nil)
		}
		if err := parseDigit(f, out, text); err != nil {
			return nil, err
		}
		f.offset += int64(len(text)) + 1
	}
	if err := lines.Err(); err != nil {
		return nil, f.fail(len(out.Labels), "a line of 65 numbers", "", err)
	}
	return out, nil
}

func parseDigit(f *file, out *Images, text string) error {
	record, fields := out.Len(), 0
	for field := range strings.SplitSeq(text, ",") {
		limit := uint64(digitsMax)
		if fields == digitsSide*digitsSide {
			limit = 9
		}
		v, err := strconv.ParseUint(field, 10, 8)
		if err != nil || v > limit {
			return f.fail(record, fmt.Sprintf("a number from 0 to %d in column %d", limit, fields+1), strconv.Quote(shorten(field)), nil)
		}
		fields++
		switch {
		case fields <= digitsSide*digitsSide:
			out.Pixels = append(out.Pixels, byte(15*v))
		case fields == digitsSide*digitsSide+1:
			out.Labels = append(out.Labels, int32(v))
		}
	}
	if fields != digitsSide*digitsSide+1 {
		return f.fail(record, "64 grey values and a label", fmt.Sprintf("%d columns", fields), nil)
	}
	return nil
}

// shorten keeps garbage from filling the screen.
func shorten(s string) string {
	if len(s) > 20 {
		return s[:20] + "..."
	}
	return s
}
