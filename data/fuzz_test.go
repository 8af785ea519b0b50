package data

import (
	"errors"
	"testing"
)

// checkParsed holds what every parser promises: images that pass Check, or a
// *FileError.
func checkParsed(t *testing.T, images *Images, err error) {
	t.Helper()
	var file *FileError
	switch {
	case err == nil && images.Len() > 0:
		if err := images.Check(); err != nil {
			t.Fatal(err)
		}
	case err != nil && !errors.As(err, &file):
		t.Fatalf("no FileError: %v", err)
	}
}

func FuzzIDXImages(f *testing.F) {
	good := goodIDX()[trainImages]
	f.Add(good)
	f.Add(pack(good))
	f.Add(good[:20])
	f.Add(idx([]byte{1}, 1<<32-1, 1<<32-1, 1<<32-1))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open("fuzz", b)
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		images, n, err := parseIDXImages(file)
		if err == nil {
			images.Classes, images.Labels = 1, make([]int32, n)
		}
		checkParsed(t, images, err)
	})
}

func FuzzIDXLabels(f *testing.F) {
	good := idx([]byte{0, 1, 9}, 3)
	f.Add(good)
	f.Add(pack(good))
	f.Add(good[:7])
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open("fuzz", b)
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		labels, err := parseIDXLabels(file, 10)
		checkParsed(t, &Images{Channels: 1, Height: 1, Width: 1, Classes: 10, Pixels: make([]byte, len(labels)), Labels: labels}, err)
	})
}

func FuzzCIFAR(f *testing.F) {
	good := join(record(1, 1), record(9, 2))
	f.Add(good)
	f.Add(pack(good))
	f.Add(good[:4000])
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open("fuzz", b)
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		images := &Images{Channels: 3, Height: cifarSide, Width: cifarSide, Classes: 10}
		checkParsed(t, images, parseCIFAR(file, images))
	})
}

func FuzzDigits(f *testing.F) {
	f.Add([]byte(digitLine("3") + digitLine("9")))
	f.Add(pack([]byte(digitLine("3"))))
	f.Add([]byte("1,2,3\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open("fuzz", b)
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		images, err := parseDigits(file)
		checkParsed(t, images, err)
	})
}

func FuzzClassNames(f *testing.F) {
	f.Add([]byte("cat\ndog\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open("fuzz", b)
		if err != nil {
			checkParsed(t, nil, err)
			return
		}
		names, err := parseClassNames(file)
		if err == nil && len(names) > 256 {
			t.Fatal("too many names")
		}
		checkParsed(t, &Images{}, err)
	})
}
