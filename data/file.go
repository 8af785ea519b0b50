package data

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
)

// directory is where a set's files lie: on disk or embedded.
type directory struct {
	fs   fs.FS
	path string // for messages
}

// file is one opened data file, unpacked while it is read.
type file struct {
	path   string
	stored int64 // bytes as stored, packed or not
	packed bool
	offset int64 // unpacked bytes read so far
	reader io.Reader
	closer io.Closer
}

// maxRatio bounds what one packed byte can become: deflate's best is 1032 to 1.
const maxRatio = 1040

// open opens the first of the names that exists in d. Content decides whether
// a file is gzip; a name that ends in .gz must be. A file that cannot be had is
// the fault of the setting that says where it is; what is in it is the file's.
func (d directory) open(names ...string) (*file, error) {
	for _, name := range names {
		if info, err := fs.Stat(d.fs, name); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("data.path: %s is no file but a pipe or device", filepath.Join(d.path, name))
		}
		f, err := d.fs.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("data.path: open %s: %w", filepath.Join(d.path, name), cause(err))
		}
		out, err := newFile(filepath.Join(d.path, name), f)
		if err != nil {
			f.Close()
			return nil, err
		}
		return out, nil
	}
	return nil, fmt.Errorf("data.path: %s holds no %s: %w", d.path, strings.Join(names, " and no "), fs.ErrNotExist)
}

// cause is a file error without its path, which is only the last part of it here.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func newFile(name string, f fs.File) (*file, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("data.path: %s: %w", name, err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("data.path: %s is no file but a directory", name)
	}
	out, err := newReader(name, f, info.Size())
	if err != nil {
		return nil, err
	}
	out.closer = f
	return out, nil
}

// newReader makes a file of r, of which stored bytes are known to exist.
func newReader(name string, r io.Reader, stored int64) (*file, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	out := &file{path: name, stored: stored, reader: buffered}
	start, _ := buffered.Peek(2)
	isGzip := len(start) == 2 && start[0] == 0x1f && start[1] == 0x8b
	if !isGzip && path.Ext(name) != ".gz" {
		return out, nil
	}
	unpacker, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, &FileError{Path: name, Offset: 0, Record: -1, Expected: "gzip data", Found: fmt.Sprintf("% x", start), Err: err}
	}
	out.packed, out.reader = true, unpacker
	return out, nil
}

func (f *file) close() {
	if f.closer != nil {
		f.closer.Close()
	}
}

// capacity returns the most bytes that the file can unpack to.
func (f *file) capacity() uint64 {
	if f.packed {
		return uint64(f.stored) * maxRatio
	}
	return uint64(f.stored)
}

// read returns the next n bytes, whose meaning and record size are for the
// error. Memory grows with what really arrives, not with what n promises.
func (f *file) read(n uint64, what string, record int) ([]byte, error) {
	start := f.offset
	if left := f.capacity() - min(f.capacity(), uint64(start)); n > left {
		return nil, f.fail(-1, fmt.Sprintf("%d bytes of %s", n, what),
			fmt.Sprintf("a file of %d bytes, too short for them", f.stored), nil)
	}
	var out []byte
	for uint64(len(out)) < n {
		have := len(out)
		grown := make([]byte, min(n, max(uint64(have)*2, 1<<20)))
		copy(grown, out)
		got, err := io.ReadFull(f.reader, grown[have:])
		f.offset += int64(got)
		out = grown[:have+got]
		if err != nil {
			return nil, f.short(start, n, what, record, err)
		}
	}
	return out, nil
}

// whole returns all of a text, if it has no more than most bytes. What a file
// that is not packed holds too much is seen before any of it is read.
func (f *file) whole(most int64) ([]byte, error) {
	tooMuch := fmt.Sprintf("a text of at most %d bytes, which is held in memory", most)
	if !f.packed && f.stored > most {
		return nil, f.fail(-1, tooMuch, fmt.Sprintf("%d bytes", f.stored), nil)
	}
	text, err := io.ReadAll(io.LimitReader(f.reader, most+1))
	f.offset = int64(len(text))
	switch {
	case err != nil:
		return nil, f.fail(-1, "text", "damaged data", err)
	case f.offset > most:
		return nil, f.fail(-1, tooMuch, "more", nil)
	}
	return text, nil
}

// short makes the error of a read that ended early at f.offset.
func (f *file) short(start int64, n uint64, what string, record int, err error) error {
	at := -1
	if record > 0 {
		at = int((f.offset - start) / int64(record))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return f.fail(at, fmt.Sprintf("%d bytes of %s from byte %d", n, what, start),
		fmt.Sprintf("only %d", f.offset-start), err)
}

// end returns an error unless everything was read and the checksum holds.
func (f *file) end(what string) error {
	var extra [1]byte
	n, err := io.ReadFull(f.reader, extra[:])
	if n > 0 {
		return f.fail(-1, "the end of the file after "+what, "more bytes", nil)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return f.fail(-1, "the end of the file after "+what, "damaged data", err)
	}
	return nil
}

func (f *file) fail(record int, expected, found string, err error) error {
	return &FileError{Path: f.path, Offset: f.offset, Record: record, Expected: expected, Found: found, Err: err}
}
