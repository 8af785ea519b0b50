package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/gradfusion/gradfusion/device"
)

// A file is the header's length in 8 little-endian bytes, the header (JSON,
// padded with spaces to a multiple of 8) and the bytes of the tensors without
// gaps. The checksum is the SHA-256 of the whole file with '0' in the 64 places
// where its own hexadecimal digits stand, which are always the same places.
const (
	metadataKey    = "__metadata__"
	checksumKey    = "gradfusion_sha256"
	headerStart    = `{"` + metadataKey + `":{"` + checksumKey + `":"`
	checksumAt     = 8 + len(headerStart) // in the file
	checksumDigits = 64
	maxHeader      = 100_000_000 // the format's own limit
)

var noChecksum = bytes.Repeat([]byte{'0'}, checksumDigits)

// header returns the first bytes of the file, up to the tensors, with an empty
// checksum. It takes the tensors in order.
func (s *State) header() ([]byte, error) {
	b := make([]byte, 8, 4096)
	b = append(append(append(b, headerStart...), noChecksum...), '"')
	for _, key := range slices.Sorted(maps.Keys(s.Metadata)) {
		b = append(appendString(append(b, ','), key), ':')
		b = appendString(b, s.Metadata[key])
	}
	b = append(b, '}')
	offset := 0
	for i := range s.Tensors {
		t := &s.Tensors[i]
		b = append(appendString(append(b, ','), t.Name), `:{"dtype":"`+dtypes[t.Type]+`","shape":[`...)
		for k, d := range t.Shape {
			if k > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(d), 10)
		}
		b = append(b, `],"data_offsets":[`...)
		b = strconv.AppendInt(b, int64(offset), 10)
		size, _ := bytesOf(t.Type, t.Shape)
		offset += int(size)
		b = strconv.AppendInt(append(b, ','), int64(offset), 10)
		b = append(b, "]}"...)
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if len(b)-8 > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes: the format allows %d", len(b)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b, nil
}

func appendString(b []byte, s string) []byte {
	q, _ := json.Marshal(s) // a string cannot fail
	return append(b, q...)
}

// entry is a tensor's place as the header gives it.
type entry struct {
	tensor     Tensor
	start, end uint64
}

// parseHeader reads the JSON of a header whose tensors take body bytes. It
// insists on what the format does: known types, sizes that fit the shapes, and
// tensors that cover the body without gaps or overlaps. Entries come back in
// the order of their bytes.
func parseHeader(b []byte, body uint64) (map[string]string, []entry, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	metadata := map[string]string{}
	var entries []entry
	err := object(d, func(key string) error {
		if key == metadataKey {
			return object(d, func(key string) error {
				token, err := d.Token()
				text, ok := token.(string)
				if err == nil && !ok {
					err = fmt.Errorf("metadata %s is no string", strconv.Quote(key))
				}
				metadata[key] = text
				return err
			})
		}
		e, err := parseEntry(d, key)
		entries = append(entries, e)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimLeft(b[d.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, fmt.Errorf("header: %d bytes after its end", len(rest))
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	return metadata, entries, checkCover(entries, body)
}

// object reads a JSON object; value reads the value of each key, which may
// come once only.
func object(d *json.Decoder, value func(key string) error) error {
	token, err := d.Token()
	if err == nil && token != json.Delim('{') {
		err = fmt.Errorf("header: %v where an object should start", token)
	}
	if err != nil {
		return plain(err)
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return plain(err)
		}
		key, _ := token.(string) // the decoder admits nothing else here
		if seen[key] {
			return fmt.Errorf("header: %s comes twice", strconv.Quote(key))
		}
		seen[key] = true
		if err := value(key); err != nil {
			return plain(err)
		}
	}
	_, err = d.Token()
	return plain(err)
}

// plain says of a header that just stops that it does.
func plain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("header: it ends too early")
	}
	return err
}

func parseEntry(d *json.Decoder, name string) (e entry, err error) {
	var raw struct {
		Dtype       *string  `json:"dtype"`
		Shape       []int    `json:"shape"`
		DataOffsets []uint64 `json:"data_offsets"`
	}
	quoted := strconv.Quote(name)
	if err := d.Decode(&raw); err != nil {
		return e, fmt.Errorf("tensor %s: %w", quoted, plain(err))
	}
	if raw.Dtype == nil || raw.Shape == nil || len(raw.DataOffsets) != 2 {
		return e, fmt.Errorf("tensor %s: it needs dtype, shape and two data_offsets", quoted)
	}
	at := slices.Index(dtypes[:], *raw.Dtype)
	if at < 0 {
		return e, fmt.Errorf("tensor %s: unknown type %q", quoted, *raw.Dtype)
	}
	e.tensor = Tensor{Name: name, Type: device.Type(at), Shape: raw.Shape}
	e.start, e.end = raw.DataOffsets[0], raw.DataOffsets[1]
	n, ok := bytesOf(e.tensor.Type, raw.Shape)
	if !ok || e.end < e.start || e.end-e.start != n {
		return e, fmt.Errorf("tensor %s: bytes %d to %d do not make %v of %s", quoted, e.start, e.end, raw.Shape, *raw.Dtype)
	}
	return e, nil
}

// checkCover wants the entries, in order, to fill [0, body) exactly.
func checkCover(entries []entry, body uint64) error {
	var next uint64
	for _, e := range entries {
		if e.start != next {
			return fmt.Errorf("tensor %s: it starts at byte %d, the one before ends at %d", strconv.Quote(e.tensor.Name), e.start, next)
		}
		next = e.end
	}
	if next != body {
		return fmt.Errorf("the tensors take %d bytes, the file has %d for them", next, body)
	}
	return nil
}
