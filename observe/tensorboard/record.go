package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
)

// recordHead is what stands before a record's content: its length in 8 bytes
// and the masked checksum of these. After the content comes its own.
const recordHead = 8 + 4

// beginRecord makes room for a record's head; its content is appended next.
func beginRecord(b []byte) []byte { return append(b, make([]byte, recordHead)...) }

// endRecord completes the record whose head begins at start.
func endRecord(b []byte, start int, table *crc32.Table) []byte {
	head, content := b[start:start+recordHead], b[start+recordHead:]
	binary.LittleEndian.PutUint64(head, uint64(len(content)))
	binary.LittleEndian.PutUint32(head[8:], mask(crc32.Checksum(head[:8], table)))
	return binary.LittleEndian.AppendUint32(b, mask(crc32.Checksum(content, table)))
}

// mask changes a checksum (CRC-32C) so that a checksum over data that contains
// checksums keeps its strength: rotate right by 15, add a constant.
func mask(sum uint32) uint32 { return (sum>>15 | sum<<17) + 0xa282ead8 }
