package cpu

// How a product on the matrix unit is cut into parts.
const (
	// productPartsRows is how many rows share a reading of the right side.
	productPartsRows = 384
	// productPartsSums bounds rows x panels of a part: its sums and some chunks of
	// its panels share the second-level cache.
	productPartsSums   = 32 * productPartsRows
	productPartsPanels = 48
	// Where several threads compute, productPartsEach is how many parts there should
	// be for each, and productPartsLeast how many rows they have for that, at least.
	// Of few rows that would be too many: each of productPartsApart cuts the right
	// side for itself.
	productPartsEach  = 2
	productPartsLeast = 64
	productPartsApart = 128
)

// leftFits reports whether there is room for the parts of the left side.
func (t *productTask) leftFits() bool {
	return t.left.count*chunkWords((t.d.K+partDepth-1)/partDepth) <= leftPartsWords
}

// leftOnce reports whether the left side is cut once for all groups of panels: to
// write parts to memory and read them there takes longer than to cut twice.
func (t *productTask) leftOnce() bool { return t.groups > 2 && t.leftFits() }

// rightOnce reports whether the right side is cut once for all blocks of rows. One
// whose lines lie as panels have them is cut as fast as its parts are read.
func (t *productTask) rightOnce() bool {
	return t.blocks > 1 && (t.right.along || t.right.widen != nil || t.rowsOf < productPartsApart)
}

// setRows makes rows those of a block, and as many panels a group as go with them.
func (t *productTask) setRows(rows int) {
	t.rowsOf = rows
	t.blocks = (t.left.count + rows - 1) / rows
	wide := min(productPartsPanels, productPartsSums/rows)
	t.groups = (t.panels + wide - 1) / wide
}

// cutParts sets the sizes of parts, which do not change what an element is the
// sum of. Several threads get equally many parts of about as many rows, and some to
// spare, as far as each part has enough rows to share what it reads of the right side.
func (t *productTask) cutParts(threads int) {
	units := cells(t.left.count)
	t.setRows(min(productPartsRows, units*partRows))
	if threads > 1 {
		least, fewest, rowsLeast := productPartsEach*threads, t.blocks, productPartsLeast
		if !t.leftFits() {
			rowsLeast = partRows // each group of panels would cut it again
		}
		if fewest == 1 && units*partRows >= productPartsApart*threads {
			least = threads
		}
		for blocks := fewest; ; blocks = max(blocks, t.blocks) + 1 {
			rows := (units + blocks - 1) / blocks * partRows
			if blocks > fewest && (rows < rowsLeast || blocks > units) {
				break
			}
			t.setRows(rows)
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

// cells is how many times partRows the rows are.
func cells(rows int) int { return (rows + partRows - 1) / partRows }

// cutCells makes parts of a panel and partRows rows each, whatever the threads.
func (t *productTask) cutCells() {
	t.setRows(partRows)
	t.groups = t.panels
	t.parts = t.groups * t.blocks
}
