package trainer

import "github.com/gradfusion/gradfusion/device"

// counting is a device like sizing that also adds up how long kernels would take:
// what can be known without running them, so that it is the same everywhere.
type counting struct {
	device.Device
	time *float64 // milliseconds
}

func (d counting) Kernels() device.Kernels { return counted{idle{d.Device.Kernels()}, d.time} }

// counted counts a forward pass. The two constants are those of one core with
// wide vectors; only their ratio decides where a model is cut.
type counted struct {
	idle
	time *float64
}

const (
	perProduct = 1.0 / 25e6  // ms of a multiplication and addition: 25 GFMA/s
	perElement = 1.0 / 2.5e6 // ms of a float32 read or written: 10 GB/s
)

func (c counted) products(n ...int) {
	p := perProduct
	for _, k := range n {
		p *= float64(k)
	}
	*c.time += p
}

func (c counted) elements(buffers ...device.Buf) {
	for _, b := range buffers {
		*c.time += perElement * float64(b.Len)
	}
}

func (c counted) Copy(dst, src device.Buf)                                { c.elements(dst, src) }
func (c counted) Add(dst, a, b device.Buf)                                { c.elements(dst, a, b) }
func (c counted) Activate(_ device.Activation, y, x device.Buf)           { c.elements(y, x) }
func (c counted) Dropout(y, x device.Buf, _ float32, _ uint64)            { c.elements(y, x) }
func (c counted) PoolForward(_ device.Pool, y, _, x device.Buf)           { c.elements(y, x) }
func (c counted) GlobalAvgForward(y, x device.Buf, _, _, _, _ int)        { c.elements(y, x) }
func (c counted) EmbeddingForward(_ device.Embedding, y, _, _ device.Buf) { c.elements(y, y) }

func (c counted) MatMul(d device.MatMul, y, a, b, _ device.Buf) {
	c.products(d.M, d.N, d.K)
	*c.time += perElement * float64(d.M*d.N+d.M*d.K+d.N*d.K)
}

func (c counted) ConvForward(d device.Conv, y, x, w, _ device.Buf) {
	c.products(d.N, d.OutH(), d.OutW(), d.K, d.GroupC(), d.R, d.S)
	c.elements(y, x, w)
}

func (c counted) AttentionForward(d device.Attention, y, _, qkv device.Buf) {
	c.products(2, d.Batch, d.Heads, d.Length, d.Length, d.Width)
	c.elements(y, qkv)
}

func (c counted) LayerNormForward(_ device.LayerNorm, y, _, _, x, _, _ device.Buf) {
	c.elements(y, x, x)
}

// BatchNormForward includes the pass over x that takes its moments.
func (c counted) BatchNormForward(_ device.BatchNorm, y, x, _, _, _, _, residual device.Buf) {
	c.elements(y, x, x, residual)
}

func (c counted) CopyChannels(_ device.Layout, dst device.Buf, _, _ int, src device.Buf, _, _, _, _ int) {
	c.elements(src, src)
}

func (c counted) Reorder(dst device.Buf, _ device.Layout, src device.Buf, _ device.Layout, _, _, _, _ int) {
	c.elements(dst, src)
}
