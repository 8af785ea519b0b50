package cpu

// padded describes an image with zeros around it. pixel is the floats of one
// pixel of a plane: 16 in nChw16c, 1 in a plain image.
type padded struct {
	planes, h, w  int
	top, left     int
	height, width int // with the padding
	pixel         int
}

// around returns the padded image of planes h x w planes: top and left rows and
// columns before it, and at least height x width in all.
func around(planes, h, w, top, left, height, width, pixel int) padded {
	return padded{planes, h, w, top, left, max(height, top+h), max(width, left+w), pixel}
}

// bare reports whether nothing surrounds the image, so that it may be used
// where it lies.
func (p *padded) bare() bool { return p.height == p.h && p.width == p.w }

// planeLen returns the floats of one padded plane.
func (p *padded) planeLen() int { return p.height * p.width * p.pixel }

// offset returns the bytes from the start to a pixel of the padded image.
func (p *padded) offset(plane, y, x int) int64 {
	return int64(((plane*p.height+y)*p.width + x) * p.pixel * 4)
}

// fill copies count planes of src, from the element at on, into dst, with zeros
// around.
func (p *padded) fill(dst []float32, src tensor, at, count int) {
	line := p.w * p.pixel
	before := p.left * p.pixel
	whole := p.width * p.pixel
	for range count {
		clear(dst[:p.top*whole])
		dst = dst[p.top*whole:]
		for range p.h {
			clear(dst[:before])
			src.take(dst[before:before+line], at)
			clear(dst[before+line : whole])
			dst, at = dst[whole:], at+line
		}
		rest := (p.height - p.top - p.h) * whole
		clear(dst[:rest])
		dst = dst[rest:]
	}
}
