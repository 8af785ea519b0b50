package cpu

// How a product on the matrix unit is cut into parts.
const (
	// productPartsRows is how many rows share a reading of the right side.
	productPartsRows = 256
	// productPartsSums bounds rows x panels of a part: its sums and some chunks of
	// its panels share the second-level cache.
	productPartsSums   = 1 << 13
	productPartsPanels = 48
	// Where several threads compute, productPartsEach is how many parts there should
	// be for each, and productPartsLeast how many rows they have for that, at least.
	productPartsEach  = 2
	productPartsLeast = 64
)

// leftOnce reports whether the left side is cut once for all groups of panels.
func (t *productTask) leftOnce() bool {
	return t.left.count*chunkWords((t.d.K+partDepth-1)/partDepth) <= leftPartsWords
}

// cutParts sets the sizes of parts, which do not change what an element is the
// sum of. Several threads get equally many parts of about as many rows, and some to
// spare, as far as each part has enough rows to share what it reads of the right side.
func (t *productTask) cutParts(threads int) {
	units := (t.left.count + partRows - 1) / partRows
	t.blocks = (units*partRows + productPartsRows - 1) / productPartsRows
	t.rowsOf = min(productPartsRows, units*partRows)
	wide := min(productPartsPanels, productPartsSums/t.rowsOf)
	t.groups = (t.panels + wide - 1) / wide
	if threads > 1 {
		least, fewest, rowsLeast := productPartsEach*threads, t.blocks, productPartsLeast
		if !t.leftOnce() {
			rowsLeast = partRows // each group of panels would cut it again
		}
		for blocks := fewest; ; blocks = max(blocks, t.blocks) + 1 {
			rows := (units + blocks - 1) / blocks * partRows
			if blocks > fewest && (rows < rowsLeast || blocks > units) {
				break
			}
			t.rowsOf = rows
			t.blocks = (t.left.count + rows - 1) / rows
			if n := t.groups * t.blocks; n >= least && (n%threads == 0 || n >= 2*least) {
				break
			}
		}
		if t.groups*t.blocks < least {
			// A group has two panels at least, which the unit takes at once.
			t.groups = max(t.groups, min((t.panels+1)/2, (least+t.blocks-1)/t.blocks))
		}
	}
	t.parts = t.groups * t.blocks
}
