package cpu

import "unsafe"

// Rows of a full group: 6 x 16 sums of eight floats, or 12 x 32 of sixteen, and
// what they are made of fill the vector registers.
const (
	rowsAVX2   = 6
	rowsAVX512 = 12
)

// tileNarrow computes a tile of one panel.
func tileNarrow(t *tile) { tileAVX2((*uint64)(unsafe.Pointer(t))) }

// tileWide computes a tile of one or two panels.
func tileWide(t *tile) {
	if t.panels == 2 {
		tileWideAVX512((*uint64)(unsafe.Pointer(t)))
		return
	}
	tileAVX512((*uint64)(unsafe.Pointer(t)))
}
