package commtest

import (
	"sync"

	"github.com/gradfusion/gradfusion/device"
)

// vectors are small integers that the ranks of one process read together: making
// them for each rank and call anew takes far longer than the calls. All are runs
// of one long list, each begins elsewhere in it.
type vectors struct {
	ranks   int
	values  []int8
	mu      sync.Mutex
	packed  map[device.Type]device.Buf
	summed  map[shape]device.Buf
	oracles map[string]*oracle
}

type shape struct {
	typ    device.Type
	length int
}

// newVectors makes those of that many ranks, each at most length elements long.
// Sums of up to mostRanks are
// exact in every type.
func newVectors(ranks, length int) *vectors {
	v := &vectors{ranks: ranks, packed: map[device.Type]device.Buf{}, summed: map[shape]device.Buf{}, oracles: map[string]*oracle{}}
	v.values = make([]int8, length+1000*ranks+apart*ranks)
	x := uint32(1)
	for i := range v.values {
		x = x*1664525 + 1013904223
		v.values[i] = int8(x>>24&7) - 3 // -3 to 4
		if v.values[i] == 4 {
			v.values[i] = 1
		}
	}
	return v
}

// apart is how far from each other the vectors of two ranks begin.
const apart = 37

// at returns rank r's i-th element as it is in a type.
func (v *vectors) at(typ device.Type, r, i int) int {
	x := int(v.values[apart*r+i])
	if typ == device.U8 {
		return max(x, -x)
	}
	return x
}

// input returns rank r's elements [lo, hi).
func (v *vectors) input(typ device.Type, r, lo, hi int) device.Buf {
	v.mu.Lock()
	defer v.mu.Unlock()
	all, ok := v.packed[typ]
	if !ok {
		whole := make([]float64, len(v.values))
		for i := range whole {
			whole[i] = float64(v.at(typ, 0, i))
		}
		all = pack(typ, whole)
		v.packed[typ] = all
	}
	return all.Slice(apart*r+lo, apart*r+hi)
}

// sum returns the sum of all ranks' first elements.
func (v *vectors) sum(typ device.Type, length int) device.Buf {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, ok := v.summed[shape{typ, length}]
	if !ok {
		total := make([]float64, length)
		for i := range total {
			sum := 0
			for r := range v.ranks {
				sum += v.at(typ, r, i)
			}
			total[i] = float64(sum)
		}
		b = pack(typ, total)
		v.summed[shape{typ, length}] = b
	}
	return b
}

// oracle is a simulation that all ranks of a process look at, once each.
type oracle struct {
	once          sync.Once
	inputs, wants [][]float32 // by rank
	err           error
	looks         int
}

// oracle returns what simulate gives, which the first rank that asks for a name
// calls and the last forgets.
func (v *vectors) oracle(name string, simulate func() (inputs, wants [][]float32, err error)) (inputs, wants [][]float32, err error) {
	v.mu.Lock()
	o := v.oracles[name]
	if o == nil {
		o = &oracle{}
		v.oracles[name] = o
	}
	if o.looks++; o.looks == v.ranks {
		delete(v.oracles, name)
	}
	v.mu.Unlock()
	o.once.Do(func() { o.inputs, o.wants, o.err = simulate() })
	return o.inputs, o.wants, o.err
}
