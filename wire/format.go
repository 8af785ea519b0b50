package wire

import (
	"fmt"
	"strings"
)

// Format turns float32 values into bytes and back. Encoded values do not depend
// on the machine. A Format may keep scratch memory: it is used by one goroutine
// at a time.
type Format interface {
	// Name is the format with its settings, equal where bytes can be exchanged.
	Name() string
	// EncodedLen is the number of bytes of n values, exactly.
	EncodedLen(n int) int
	// Encode fills dst, EncodedLen(len(src)) long, which overlaps no values.
	Encode(dst []byte, src []float32, seed uint64)
	// EncodeKeeping is Encode that leaves in x what was lost: x minus what dst
	// decodes to, and 0 where that is not finite.
	EncodeKeeping(dst []byte, x []float32, seed uint64)
	// Decode sets dst.
	Decode(dst []float32, src []byte)
	// DecodeAdd adds the values to dst.
	DecodeAdd(dst []float32, src []byte)
}

// Config chooses a Format; the zero value is float32 as it is, which needs none.
type Config struct {
	Name     string  // f32, f16, bf16, int8, int4 or topk
	Fraction float64 // topk: the share of values that are sent; 0 means 0.01
}

// Names lists the formats that New has.
func Names() []string { return []string{"f32", "f16", "bf16", "int8", "int4", "topk"} }

// New makes a Format; nil for f32 and "".
func New(c Config) (Format, error) {
	switch c.Name {
	case "", "f32":
		return nil, nil
	case "f16":
		return NewHalf(false), nil
	case "bf16":
		return NewHalf(true), nil
	case "int8":
		return NewBlocks(8), nil
	case "int4":
		return NewBlocks(4), nil
	case "topk":
		return NewTopK(c.Fraction), nil
	}
	return nil, fmt.Errorf("unknown wire format %q (known: %s)", c.Name, strings.Join(Names(), " "))
}
