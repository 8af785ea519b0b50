package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pack(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// idx makes an IDX file of unsigned bytes.
func idx(content []byte, dims ...uint32) []byte {
	out := []byte{0, 0, 8, byte(len(dims))}
	for _, d := range dims {
		out = binary.BigEndian.AppendUint32(out, d)
	}
	return append(out, content...)
}

// open makes a file of bytes in memory, as a parser gets it.
func open(name string, b []byte) (*file, error) {
	return newReader(name, bytes.NewReader(b), int64(len(b)))
}

// write puts files into a fresh directory.
func write(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	return dir
}

func with(files map[string][]byte, name string, b []byte) map[string][]byte {
	out := map[string][]byte{}
	for k, v := range files {
		out[k] = v
	}
	delete(out, name)
	if b != nil {
		out[name] = b
	}
	return out
}

func damage(b []byte, at int) []byte {
	out := bytes.Clone(b)
	out[at] ^= 0xff
	return out
}

func goodIDX() map[string][]byte {
	return map[string][]byte{
		trainImages:         idx(bytes.Repeat([]byte{1, 2, 3, 250}, 6), 6, 2, 2),
		trainLabels + ".gz": pack(idx([]byte{0, 1, 2, 3, 4, 9}, 6)),
		testImages + ".gz":  pack(idx(bytes.Repeat([]byte{5, 6, 7, 8}, 2), 2, 2, 2)),
		testLabels:          idx([]byte{7, 8}, 2),
	}
}

func TestReadIDXPackedAndPlain(t *testing.T) {
	s, err := Open(Config{Path: write(t, goodIDX())})
	require.NoError(t, err)
	require.Equal(t, &Images{Channels: 1, Height: 2, Width: 2, Classes: 10,
		Pixels: []byte{5, 6, 7, 8, 5, 6, 7, 8}, Labels: []int32{7, 8}}, s.Test)
	require.Equal(t, []int32{0, 1, 2, 3, 4, 9}, s.Train.Labels)
	require.Equal(t, 24, len(s.Train.Pixels))
	require.Equal(t, 64.0/255, s.Normalization.Mean[0])
}

func TestDamagedIDX(t *testing.T) {
	images, labels := goodIDX()[trainImages], idx([]byte{0, 1, 2, 3, 4, 9}, 6)
	packed := pack(images)
	for _, c := range []struct {
		about, name string
		content     []byte
		want        string
	}{
		{"missing", trainImages, nil, "holds no train-images-idx3-ubyte.gz and no train-images-idx3-ubyte"},
		{"empty", trainImages, []byte{}, "expected 4 bytes of IDX magic, found a file of 0 bytes"},
		{"garbage", trainImages, []byte("#!/bin/sh and so on"), "byte 0: expected the IDX magic 00 00 08 03 (bytes in 3 dimensions), found 23 21 2f 62"},
		{"labels for images", trainImages, labels, "found 00 00 08 01"},
		{"half a header", trainImages, images[:9], "byte 4: expected 12 bytes of IDX dimensions"},
		{"short", trainImages, images[:30], "byte 16: expected 24 bytes of pixels, found a file of 30 bytes, too short for them"},
		{"lying header", trainImages, idx([]byte{1}, 1<<32-1, 1<<32-1, 1<<32-1), "too short for them"},
		{"lying count", trainImages, idx([]byte{1}, 1<<31, 1, 1), "too short for them"},
		{"no images", trainImages, idx(nil, 0, 2, 2), "expected at least one image of one pixel, found 0 images of 2 x 2"},
		{"no pixels", trainImages, idx(nil, 2, 0, 2), "expected at least one image"},
		{"trailing", trainImages, append(bytes.Clone(images), 0), "byte 40: expected the end of the file after the last image, found more bytes"},
		{"short inside gzip", trainImages, pack(images[:30]), "record 3, byte 30: expected 24 bytes of pixels from byte 16, found only 14"},
		{"cut gzip", trainImages, packed[:len(packed)-9], "expected"},
		{"cut gzip checksum", trainImages, packed[:len(packed)-4], "damaged data: unexpected EOF"},
		{"damaged gzip checksum", trainImages, damage(packed, len(packed)-5), "gzip: invalid checksum"},
		{"trailing after gzip", trainImages, append(bytes.Clone(packed), "more"...), "after the last image, found damaged data"},
		{"not gzip", trainImages + ".gz", images, "expected gzip data, found 00 00: gzip: invalid header"},
		{"gzip of garbage", trainImages, pack([]byte("garbage")), "expected the IDX magic"},
		{"fewer labels", trainLabels, idx([]byte{0, 1}, 2), "expected 6 labels, one for each image of "},
		{"no labels", trainLabels, idx(nil, 0), ", found 0"},
		{"label out of range", trainLabels, idx([]byte{0, 1, 2, 3, 10, 9}, 6), "record 4, byte 12: expected a label from 0 to 9, found 10"},
		{"short labels", trainLabels, pack(idx([]byte{0, 1, 2}, 6)), "record 3, byte 11: expected 6 bytes of labels from byte 8, found only 3"},
		{"other size in test", testImages, idx(make([]byte, 6), 2, 1, 3), "training images are 1 x 2 x 2, test images 1 x 1 x 3"},
	} {
		files := with(goodIDX(), c.name, c.content)
		if c.name == trainLabels || c.name == testImages {
			delete(files, c.name+".gz")
		}
		dir := write(t, files)
		_, err := Open(Config{Path: dir})
		require.ErrorContains(t, err, c.want, c.about)
		if c.about != "other size in test" {
			require.ErrorContains(t, err, dir, c.about)
		}
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestPathErrors(t *testing.T) {
	dir := write(t, map[string][]byte{"file": {1}})
	_, err := Open(Config{Path: filepath.Join(dir, "nowhere")})
	require.ErrorContains(t, err, "data.path: ")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(Config{Path: filepath.Join(dir, "file")})
	require.ErrorContains(t, err, "is no directory")
	require.NoError(t, os.Mkdir(filepath.Join(dir, trainImages), 0o700))
	_, err = Open(Config{Path: dir})
	require.ErrorContains(t, err, "is no file but a directory")
	_, err = Open(Config{Name: "fashion"})
	require.EqualError(t, err, `data.name: unknown set "fashion" (known: fashion-mnist, fashion-mnist-full, digits, cifar10, synthetic, bible, text, synthetic-text)`)
	_, err = Open(Config{Name: "cifar10"})
	require.ErrorContains(t, err, "data.path: cifar10 is not embedded")
	_, err = Open(Config{Name: "synthetic", Path: dir})
	require.ErrorContains(t, err, "reads no files")
}

// record makes one CIFAR record.
func record(label byte, pixel byte) []byte {
	return append([]byte{label}, bytes.Repeat([]byte{pixel}, cifarPixels)...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestReadCIFARLayouts(t *testing.T) {
	test := record(3, 9)
	for about, files := range map[string]map[string][]byte{
		"batches": {"data_batch_1.bin": record(0, 1), "data_batch_2.bin": join(record(9, 2), record(1, 3)), "test_batch.bin": test},
		"packed":  {"data_batch_1.bin.gz": pack(record(0, 1)), "data_batch_2.bin.gz": pack(join(record(9, 2), record(1, 3))), "test_batch.bin.gz": pack(test)},
		"single":  {"train.bin": join(record(0, 1), record(9, 2), record(1, 3)), "test.bin.gz": pack(test)},
	} {
		s, err := Open(Config{Name: "cifar10", Path: write(t, files)})
		require.NoError(t, err, about)
		require.Equal(t, []int32{0, 9, 1}, s.Train.Labels, about)
		require.Equal(t, byte(2), s.Train.Sample(1)[cifarPixels-1])
		require.Equal(t, []int32{3}, s.Test.Labels, about)
		require.Equal(t, 10, s.Train.Classes)
		require.Nil(t, s.ClassNames)
	}
}

func TestCIFARClassNames(t *testing.T) {
	files := map[string][]byte{"train.bin": record(1, 1), "test.bin": record(0, 1), "labels.txt": []byte("cat\ndog\n\n")}
	s, err := Open(Config{Name: "cifar10", Path: write(t, files)})
	require.NoError(t, err)
	require.Equal(t, []string{"cat", "dog"}, s.ClassNames)
	require.Equal(t, 2, s.Test.Classes)
	_, err = Open(Config{Name: "cifar10", Path: write(t, with(files, "test.bin", join(record(1, 1), record(2, 1))))})
	require.ErrorContains(t, err, "test.bin, record 1, byte 3073: expected a label from 0 to 1, found 2")
	_, err = Open(Config{Name: "cifar10", Path: write(t, with(files, "labels.txt", bytes.Repeat([]byte("x\n"), 300)))})
	require.ErrorContains(t, err, "at most 256 classes")
}

func TestDamagedCIFAR(t *testing.T) {
	good := map[string][]byte{"train.bin": join(record(1, 1), record(2, 2)), "test.bin": record(0, 1)}
	for _, c := range []struct {
		about, name string
		content     []byte
		want        string
	}{
		{"missing", "train.bin", nil, "holds no data_batch_*.bin and no train.bin"},
		{"missing test", "test.bin", nil, "holds no test.bin and no test.bin.gz"},
		{"empty", "train.bin", []byte{}, "expected records of 3073 bytes, found an empty file"},
		{"truncated", "train.bin", good["train.bin"][:5000], "byte 5000: expected 3073 bytes of record 1 from byte 3073, found only 1927"},
		{"trailing", "train.bin", append(bytes.Clone(good["train.bin"]), 1), "of record 2 from byte 6146, found only 1"},
		{"label", "train.bin", join(record(1, 1), record(10, 2)), "record 1, byte 3073: expected a label from 0 to 9, found 10"},
		{"damaged gzip", "train.bin", damage(pack(good["train.bin"]), 12), "expected"},
		{"cut gzip", "train.bin", pack(good["train.bin"])[:30], "expected"},
	} {
		dir := write(t, with(good, c.name, c.content))
		_, err := Open(Config{Name: "cifar10", Path: dir})
		require.ErrorContains(t, err, c.want, c.about)
		require.ErrorContains(t, err, dir, c.about)
	}
}

func digitLine(label string) string { return strings.Repeat("16,", 64) + label + "\n" }

func TestDigits(t *testing.T) {
	var text string
	for i := range 11 {
		text += digitLine(string(rune('0' + i%10)))
	}
	s, err := Open(Config{Name: "digits", Path: write(t, map[string][]byte{"digits.csv": []byte(text)})})
	require.NoError(t, err)
	require.Equal(t, []int32{4, 9}, s.Test.Labels)
	require.Equal(t, []int32{0, 1, 2, 3, 5, 6, 7, 8, 0}, s.Train.Labels)
	require.Equal(t, byte(240), s.Test.Pixels[0])
}

func TestDamagedDigits(t *testing.T) {
	line := digitLine("3")
	for _, c := range []struct{ about, content, want string }{
		{"empty", "", "expected at least 5 lines"},
		{"label", line + digitLine("10"), "record 1, byte 194: expected a number from 0 to 9 in column 65, found \"10\""},
		{"grey value", "17," + line, "record 0, byte 0: expected a number from 0 to 16 in column 1, found \"17\""},
		{"negative", "-1," + line, "column 1"},
		{"fraction", "1.5," + line, "column 1"},
		{"short line", line + "1,2,3\n", "record 1, byte 194: expected 64 grey values and a label, found 3 columns"},
		{"long line", digitLine("3,4"), "found 66 columns"},
		{"empty line", line + "\n", "record 1"},
		{"garbage", "\x00\xff\x17" + strings.Repeat("z", 500), "found \"\\x00\\xff\\x17zzz"},
		{"endless line", strings.Repeat("1", 1<<17), "token too long"},
	} {
		dir := write(t, map[string][]byte{"digits.csv": []byte(c.content)})
		_, err := Open(Config{Name: "digits", Path: dir})
		require.ErrorContains(t, err, c.want, c.about)
		require.ErrorContains(t, err, "digits.csv", c.about)
	}
}
