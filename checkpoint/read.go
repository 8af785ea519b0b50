package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// Read reads a checkpoint and checks its checksum. Errors name the file; those
// about its content wrap ErrDamaged. The data of all tensors lie in one piece
// of memory, each aligned to its element.
func Read(path string) (State, error) {
	return open(path, func(f *file) (State, error) { return f.state(true) })
}

// Verify checks a whole file without keeping it in memory.
func Verify(path string) error {
	_, err := open(path, func(f *file) (State, error) { return State{}, f.verify() })
	return err
}

// Inspect reads metadata, names, types and shapes, but no data, and therefore
// checks no checksum.
func Inspect(path string) (State, error) {
	return open(path, func(f *file) (State, error) {
		s, _, err := f.header()
		return s, err
	})
}

// Decode reads any safetensors file of the given size from r, with or without
// our checksum, which it does not check.
func Decode(r io.Reader, size int64) (State, error) {
	f := &file{reader: r, size: size}
	return f.state(false)
}

func open(path string, use func(*file) (State, error)) (State, error) {
	f, err := os.Open(path)
	if err != nil {
		return State{}, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a file")
	}
	if err != nil {
		return State{}, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	state, err := use(&file{reader: f, size: info.Size()})
	if err != nil {
		return State{}, fmt.Errorf("checkpoint: %s: %w", path, err)
	}
	return state, nil
}

// file is read front to back, hashed on the way.
type file struct {
	reader io.Reader
	size   int64
	start  []byte    // length and header, as read
	sum    hash.Hash // nil: nobody asks
}

func damaged(err error) error { return fmt.Errorf("%w: %w", ErrDamaged, err) }

// header reads up to the tensors, which come back without data.
func (f *file) header() (State, []entry, error) {
	var length [8]byte
	if _, err := io.ReadFull(f.reader, length[:]); err != nil {
		return State{}, nil, f.short(err, "its first 8 bytes")
	}
	n := binary.LittleEndian.Uint64(length[:])
	if f.size < 8 || n > maxHeader || n > uint64(f.size-8) {
		return State{}, nil, damaged(fmt.Errorf("a header of %d bytes in a file of %d", n, f.size))
	}
	f.start = make([]byte, 8+n)
	copy(f.start, length[:])
	if _, err := io.ReadFull(f.reader, f.start[8:]); err != nil {
		return State{}, nil, f.short(err, "the header")
	}
	metadata, entries, err := parseHeader(f.start[8:], uint64(f.size)-8-n)
	if err != nil {
		return State{}, nil, damaged(err)
	}
	delete(metadata, checksumKey)
	state := State{Metadata: metadata, Tensors: make([]Tensor, len(entries))}
	for i, e := range entries {
		state.Tensors[i] = e.tensor
	}
	return state, entries, nil
}

func (f *file) short(err error, what string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(fmt.Errorf("the file of %d bytes ends within %s", f.size, what))
	}
	return err
}

// checksum returns the digits that the file claims, and starts the sum with
// the header, in which it blanks them.
func (f *file) checksum() (string, error) {
	end := checksumAt + checksumDigits
	if len(f.start) < end || !bytes.HasPrefix(f.start[8:], []byte(headerStart)) {
		return "", damaged(errors.New("the header does not start with a checksum: not written by this program, or changed since"))
	}
	claimed := string(f.start[checksumAt:end])
	copy(f.start[checksumAt:], noChecksum)
	f.sum = sha256.New()
	f.sum.Write(f.start)
	return claimed, nil
}

func (f *file) compare(claimed string) error {
	if real := hex.EncodeToString(f.sum.Sum(nil)); real != claimed {
		return damaged(fmt.Errorf("its SHA-256 is %s, the header says %.64q", real, claimed))
	}
	return nil
}

func (f *file) verify() error {
	if _, _, err := f.header(); err != nil {
		return err
	}
	claimed, err := f.checksum()
	if err != nil {
		return err
	}
	n, err := io.Copy(f.sum, f.reader)
	if err != nil {
		return err
	}
	if n != f.size-int64(len(f.start)) {
		return damaged(fmt.Errorf("the file of %d bytes changed while it was read", f.size))
	}
	return f.compare(claimed)
}

// state reads everything.
func (f *file) state(verify bool) (State, error) {
	state, entries, err := f.header()
	if err != nil {
		return State{}, err
	}
	n := int(f.size) - len(f.start)
	body := make([]byte, (n+7)&^7)[:n] // a multiple of 8 is aligned to 8
	if _, err := io.ReadFull(f.reader, body); err != nil && n > 0 {
		return State{}, f.short(err, "the tensors")
	}
	if verify {
		claimed, err := f.checksum()
		if err != nil {
			return State{}, err
		}
		f.sum.Write(body)
		if err := f.compare(claimed); err != nil {
			return State{}, err
		}
	}
	for i, e := range entries {
		data := body[e.start:e.end:e.end]
		if e.start%uint64(e.tensor.Type.Size()) != 0 { // a foreign file may do so
			data = append(make([]byte, 0, (len(data)+7)&^7), data...)
		}
		state.Tensors[i].Data = data
	}
	return state, nil
}
