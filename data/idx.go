package data

import (
	"encoding/binary"
	"fmt"
)

// The four files of a set in IDX form, as MNIST brought it: two zero bytes, a
// type (8: unsigned byte), the number of dimensions, each dimension as a
// big-endian uint32, then the values.
const (
	trainImages = "train-images-idx3-ubyte"
	trainLabels = "train-labels-idx1-ubyte"
	testImages  = "t10k-images-idx3-ubyte"
	testLabels  = "t10k-labels-idx1-ubyte"
)

// openIDX reads the four files of d.
func openIDX(d directory, classes int) (train, test *Images, err error) {
	if train, err = openIDXPair(d, trainImages, trainLabels, classes); err != nil {
		return nil, nil, err
	}
	if test, err = openIDXPair(d, testImages, testLabels, classes); err != nil {
		return nil, nil, err
	}
	return train, test, nil
}

func openIDXPair(d directory, images, labels string, classes int) (*Images, error) {
	f, err := d.open(images+".gz", images)
	if err != nil {
		return nil, err
	}
	defer f.close()
	out, n, err := parseIDXImages(f)
	if err != nil {
		return nil, err
	}
	g, err := d.open(labels+".gz", labels)
	if err != nil {
		return nil, err
	}
	defer g.close()
	out.Classes = classes
	if out.Labels, err = parseIDXLabels(g, classes); err != nil {
		return nil, err
	}
	if len(out.Labels) != n {
		return nil, &FileError{Path: g.path, Offset: 4, Record: -1,
			Expected: fmt.Sprintf("%d labels, one for each image of %s", n, f.path),
			Found:    fmt.Sprint(len(out.Labels))}
	}
	return out, nil
}

// parseIDXImages reads grey images; the labels are left empty.
func parseIDXImages(f *file) (out *Images, count int, err error) {
	dims, err := parseIDXHeader(f, 3)
	if err != nil {
		return nil, 0, err
	}
	n, size := dims[0], dims[1]*dims[2]
	if n == 0 || size == 0 {
		return nil, 0, f.fail(-1, "at least one image of one pixel", fmt.Sprintf("%d images of %d x %d", n, dims[1], dims[2]), nil)
	}
	if n > f.capacity()/size {
		return nil, 0, f.fail(-1, fmt.Sprintf("%d images of %d x %d, as the header says", n, dims[1], dims[2]),
			fmt.Sprintf("a file of %d bytes, too short for them", f.stored), nil)
	}
	pixels, err := f.read(n*size, "pixels", int(size))
	if err != nil {
		return nil, 0, err
	}
	if err := f.end("the last image"); err != nil {
		return nil, 0, err
	}
	return &Images{Channels: 1, Height: int(dims[1]), Width: int(dims[2]), Pixels: pixels}, int(n), nil
}

func parseIDXLabels(f *file, classes int) ([]int32, error) {
	dims, err := parseIDXHeader(f, 1)
	if err != nil {
		return nil, err
	}
	start := f.offset
	raw, err := f.read(dims[0], "labels", 1)
	if err != nil {
		return nil, err
	}
	if err := f.end("the last label"); err != nil {
		return nil, err
	}
	labels := make([]int32, len(raw))
	for i, v := range raw {
		if int(v) >= classes {
			f.offset = start + int64(i)
			return nil, f.fail(i, fmt.Sprintf("a label from 0 to %d", classes-1), fmt.Sprint(v), nil)
		}
		labels[i] = int32(v)
	}
	return labels, nil
}

// parseIDXHeader returns the dimensions; each fits 32 bits.
func parseIDXHeader(f *file, dims int) ([]uint64, error) {
	magic, err := f.read(4, "IDX magic", 0)
	if err != nil {
		return nil, err
	}
	want := [4]byte{0, 0, 8, byte(dims)}
	if [4]byte(magic) != want {
		f.offset = 0
		return nil, f.fail(-1, fmt.Sprintf("the IDX magic % x (bytes in %d dimensions)", want, dims), fmt.Sprintf("% x", magic), nil)
	}
	raw, err := f.read(uint64(4*dims), "IDX dimensions", 0)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, dims)
	for i := range out {
		out[i] = uint64(binary.BigEndian.Uint32(raw[4*i:]))
	}
	return out, nil
}
