package tcp

// DamageNext changes a bit of the next frame to another rank on its way, for
// tests of what a checksum is good for. It returns false, and does nothing, in a
// world without checksums.
func (t *Transport) DamageNext(to int) bool {
	if t.table == nil || to == t.rank {
		return false
	}
	t.links[to].damage.Store(true)
	return true
}
