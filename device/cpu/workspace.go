package cpu

import (
	"sync"
	"unsafe"

	"github.com/gradfusion/gradfusion/device"
)

// memory is scratch that grows to the largest size asked for and stays.
type memory struct {
	buf    device.Buf
	source *scratchRoom // nil: the Go heap
}

// scratchRoom is what the scratch of all threads of a device is cut from, so that it
// lies side by side on huge pages, and what one purpose has outgrown serves another.
type scratchRoom struct {
	mu    sync.Mutex
	arena *device.Arena
}

// ownScratch is the size from which scratch comes from a room: an arena has pages of
// their own for what is smaller.
const ownScratch = 64 << 10

// floats returns n float32 of undefined content, aligned to a cache line.
func (m *memory) floats(n int) []float32 {
	if m.buf.Len < n {
		m.grow(n)
	}
	return m.buf.F32()[:n]
}

func (m *memory) grow(n int) {
	if r := m.source; r != nil && n >= ownScratch/4 {
		r.mu.Lock()
		defer r.mu.Unlock()
		if m.buf.Len >= ownScratch/4 {
			r.arena.Put(m.buf)
		}
		m.buf = device.Buf{} // Get may panic
		m.buf = r.arena.Get(device.F32, n)
		return
	}
	b, err := device.HostAlloc(device.F32, n)
	if err != nil {
		panic(err) // sizes come from shapes whose tensors exist
	}
	m.buf = b
}

// scratch belongs to one thread.
type scratch struct {
	tile      tile
	parts     partsProduct
	attention attentionScratch
	image     memory // a zero-padded image
	left      memory // parts of rows
	plane     memory // an image in the other layout
	wide      memory // 16-bit numbers as float32
	result    memory // float32 to be rounded to 16 bits
	steps     []int64
	sums      []float64
	pixel     [block]float32

	windows windowRun

	winograd winogradScratch
}

// from makes room the source of what is large.
func (s *scratch) from(room *scratchRoom) {
	a, w := &s.attention, &s.winograd
	for _, m := range []*memory{
		&s.image, &s.left, &s.plane, &s.wide, &s.result,
		&a.keys, &a.values, &a.keyRows, &a.valueRows, &a.queries, &a.gradients, &a.scores, &a.scoreSlopes, &a.sums, &a.head,
		&w.data, &w.gradient, &w.sink, &w.outside, &w.dump, &w.carry, &w.rows, &w.v, &w.m, &w.u, &w.whole, &w.temporary,
	} {
		m.source = room
	}
}

// workspace is what one kernel call needs beside its arguments: a task of each
// kind, so that none is allocated, and memory that its threads share.
type workspace struct {
	share share
	own   scratch

	room   room
	bias   memory
	rows   []row
	steps  []int64
	phases []phase
	taps   []tap
	norms  []normNumbers
	losses []float64
	right  []int32

	notFinite []bool

	vectorTensors vectorTensors

	elements      elementsTask
	pack          packTask
	rowBlocks     rowBlocksTask
	widening      wideningTask
	product       productTask
	conv          convTask
	weights       weightsTask
	productParts  productParts
	rightParts    rightParts
	leftParts     leftParts
	productAgain  productAgain
	parts         panelPartsTask
	convParts     convParts
	gradientParts gradientParts
	normBlocks    normBlocks
	gradient      gradientTask
	scatter       scatterTask
	moments       momentsTask
	norm          normTask
	plain         plainTask
	rowSums       rowSumsTask
	pooling       poolingTask
	layout        layoutTask
	softmax       softmaxTask
	layerNorm     layerNormTask
	embedding     embeddingTask
	attention     attentionTask
	errors        errorsTask

	grouped           grouped
	depthwise         depthwiseTask
	depthwiseGradient depthwiseGradient
	winograd          winogradTask
	winogradPanels    winogradPanels
	winogradInputs    winogradInputs
	winogradGroups    winogradGroups
	winogradGradient  winogradGradient
	winogradStore     winogradStore
	winogradImages    winogradImages
	winogradChunks    winogradChunks
	winogradPositions winogradPositions
	winogradOutputs   winogradOutputs
	winogradSums      winogradSumsTask
	winogradCutInputs winogradCutInputs
	winogradCutGroups winogradCutGroups
	winogradCutImages winogradCutImages
	winogradCutChunks winogradCutChunks
}

func newWorkspace(set *kernelSet, regions *device.HostRegions, scratch *scratchRoom) *workspace {
	w := &workspace{room: room{regions: regions}, elements: elementsTask{set: set}}
	w.own.from(scratch)
	return w
}

// address returns where element i of s lies. Behind the last element lies
// nothing that is read, and the garbage collector ends a program that holds a
// pointer there: the start stands for it.
func address(s []float32, i int) unsafe.Pointer {
	if i == len(s) {
		i = 0
	}
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(s)), i*4)
}

// grow returns s with length n, its content undefined.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
