package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sort"
	"strings"
)

const (
	cifarSide   = 32
	cifarPixels = 3 * cifarSide * cifarSide
	cifarRecord = 1 + cifarPixels // label, then the red, green and blue planes

	// cifarLimit bounds the records of one file, because the form has no header
	// and a small gzip file can unpack to anything.
	cifarLimit = 1 << 20
)

// openCIFAR reads data_batch_*.bin and test_batch.bin, or train.bin and
// test.bin, each packed or not. The names of the classes come from
// batches.meta.txt or labels.txt; without either there are ten.
func openCIFAR(d directory) (train, test *Images, names []string, err error) {
	if names, err = readClassNames(d); err != nil {
		return nil, nil, nil, err
	}
	classes := len(names)
	if classes == 0 {
		classes = 10
	}
	trainFiles, testFiles, err := cifarFiles(d)
	if err != nil {
		return nil, nil, nil, err
	}
	if train, err = openCIFARPart(d, trainFiles, classes); err != nil {
		return nil, nil, nil, err
	}
	if test, err = openCIFARPart(d, testFiles, classes); err != nil {
		return nil, nil, nil, err
	}
	return train, test, names, nil
}

// cifarFiles finds which of the two layouts d has.
func cifarFiles(d directory) (train, test []string, err error) {
	for _, end := range []string{".bin", ".bin.gz"} {
		batches, err := fs.Glob(d.fs, "data_batch_*"+end)
		if err != nil {
			return nil, nil, fmt.Errorf("data: %s: %w", d.path, err)
		}
		if len(batches) > 0 {
			sort.Strings(batches)
			return batches, []string{"test_batch.bin", "test_batch.bin.gz"}, nil
		}
	}
	for _, name := range []string{"train.bin", "train.bin.gz"} {
		if _, err := fs.Stat(d.fs, name); err == nil {
			return []string{name}, []string{"test.bin", "test.bin.gz"}, nil
		}
	}
	return nil, nil, fmt.Errorf("data.path: %s holds no data_batch_*.bin and no train.bin (as they are or as .gz): %w", d.path, fs.ErrNotExist)
}

// openCIFARPart reads files into one set. For the test part they are
// alternatives, of which the first that exists is read.
func openCIFARPart(d directory, files []string, classes int) (*Images, error) {
	out := &Images{Channels: 3, Height: cifarSide, Width: cifarSide, Classes: classes}
	if strings.HasPrefix(files[0], "test") {
		return out, openCIFARFile(d, out, files...)
	}
	for _, name := range files {
		if err := openCIFARFile(d, out, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func openCIFARFile(d directory, out *Images, names ...string) error {
	f, err := d.open(names...)
	if err != nil {
		return err
	}
	defer f.close()
	return parseCIFAR(f, out)
}

// parseCIFAR adds the records of f to out.
func parseCIFAR(f *file, out *Images) error {
	record := make([]byte, cifarRecord)
	for i := 0; ; i++ {
		n, err := io.ReadFull(f.reader, record)
		if n == 0 && err == io.EOF {
			if i == 0 {
				return f.fail(-1, fmt.Sprintf("records of %d bytes", cifarRecord), "an empty file", nil)
			}
			return nil
		}
		if err != nil {
			start := f.offset
			f.offset += int64(n)
			return f.short(start, cifarRecord, fmt.Sprintf("record %d", i), 0, err)
		}
		if int(record[0]) >= out.Classes {
			return f.fail(i, fmt.Sprintf("a label from 0 to %d", out.Classes-1), fmt.Sprint(record[0]), nil)
		}
		if i == cifarLimit {
			return f.fail(i, fmt.Sprintf("at most %d records", cifarLimit), "more", nil)
		}
		f.offset += int64(n)
		out.Labels = append(out.Labels, int32(record[0]))
		out.Pixels = append(out.Pixels, record[1:]...)
	}
}

// readClassNames reads one name a line; no file is no names.
func readClassNames(d directory) ([]string, error) {
	f, err := d.open("batches.meta.txt", "labels.txt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.close()
	return parseClassNames(f)
}

func parseClassNames(f *file) ([]string, error) {
	var names []string
	for lines := bufio.NewScanner(f.reader); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, f.fail(len(names), "the name of a class", "", err)
			}
			return names, nil
		}
		name := strings.TrimSpace(lines.Text())
		if name == "" {
			continue
		}
		if len(names) == 256 {
			return nil, f.fail(len(names), "at most 256 classes, as labels are bytes", "more", nil)
		}
		names = append(names, name)
	}
}
