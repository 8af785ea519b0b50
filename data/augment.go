package data

import (
	"fmt"
	"strconv"
	"strings"
)

// Augment says how training images are varied. The zero value leaves them.
type Augment struct {
	Flip bool // mirror left and right, every second time
	Pad  int  // shift by up to Pad pixels each way, black (pixel 0) coming in: a random crop of the padded image
}

// ParseAugment reads none, flip, crop-flip (padding 4) or crop-flip:N.
func ParseAugment(text string) (Augment, error) {
	name, arg, hasArg := strings.Cut(text, ":")
	switch {
	case text == "none" || text == "":
		return Augment{}, nil
	case text == "flip":
		return Augment{Flip: true}, nil
	case name == "crop-flip" && !hasArg:
		return Augment{Flip: true, Pad: 4}, nil
	case name == "crop-flip":
		if pad, err := strconv.Atoi(arg); err == nil && pad >= 1 && pad < 1<<15 {
			return Augment{Flip: true, Pad: pad}, nil
		}
	}
	return Augment{}, fmt.Errorf("data.augment: unknown augmentation %q (known: none, flip, crop-flip, crop-flip:PIXELS)", text)
}

// placement is what Augment came to for one sample: destination pixel (r, c)
// shows the source pixel (r + dy, c + dx) of an image that is then mirrored.
type placement struct {
	flip   bool
	dy, dx int
}

// place is a pure function of its arguments.
func (a Augment) place(seed uint64, epoch, index int) (p placement) {
	random := newStream(randomAugment, seed, uint64(epoch), uint64(index))
	flip := random.next()>>63 == 1
	p.flip = a.Flip && flip
	if a.Pad > 0 {
		p.dy = int(random.below(uint64(2*a.Pad)+1)) - a.Pad
		p.dx = int(random.below(uint64(2*a.Pad)+1)) - a.Pad
	}
	return p
}

// draw writes one plane of h x w pixels through the table.
func (p placement) draw(dst []float32, src []byte, table *[256]float32, h, w int) {
	if p == (placement{}) {
		lookUp(dst, src, table)
		return
	}
	for r := range h {
		out := dst[r*w : (r+1)*w]
		if from := r + p.dy; from >= 0 && from < h {
			p.drawRow(out, src[from*w:(from+1)*w], table)
		} else {
			blank(out, table)
		}
	}
}

func (p placement) drawRow(out []float32, row []byte, table *[256]float32) {
	w := len(row)
	lo, hi := max(0, -p.dx), min(w, w-p.dx) // the columns, before mirroring, that the row covers
	shown := row[lo+p.dx : hi+p.dx]
	if !p.flip {
		blank(out[:lo], table)
		blank(out[hi:], table)
		lookUp(out[lo:hi], shown, table)
		return
	}
	blank(out[:w-hi], table)
	blank(out[w-lo:], table)
	out = out[w-hi : w-lo]
	last := len(shown) - 1
	for i := range out {
		out[i] = table[shown[last-i]]
	}
}

// lookUp sets each dst[i] to src[i]'s place in the table.
func lookUp(dst []float32, src []byte, table *[256]float32) {
	for len(src) >= 8 {
		d, s := (*[8]float32)(dst), (*[8]byte)(src) // no bound is checked
		d[0], d[1], d[2], d[3] = table[s[0]], table[s[1]], table[s[2]], table[s[3]]
		d[4], d[5], d[6], d[7] = table[s[4]], table[s[5]], table[s[6]], table[s[7]]
		dst, src = dst[8:], src[8:]
	}
	for i, v := range src {
		dst[i] = table[v]
	}
}

func blank(out []float32, table *[256]float32) {
	for i := range out {
		out[i] = table[0]
	}
}
