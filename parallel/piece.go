package parallel

import (
	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// roomForHeader is more than what a Comm puts before a message.
const roomForHeader = 1 << 10

// pieceOf is how many elements of a buffer travel in one message. A large message
// waits until its receiver says that there is room, which takes several turns of
// goroutines that find all processors busy. Pieces that need not wait take one turn,
// and a copy more, which is little up to the bound.
func pieceOf(buf device.Buf) int {
	if buf.Size() > collective.SegmentSize {
		return buf.Len
	}
	return (collective.EagerSize - roomForHeader) / buf.Type.Size()
}

// appendPieces appends the messages that take a buffer to or from a peer.
func appendPieces(list []collective.PointToPoint, peer int, recv bool, buf device.Buf) []collective.PointToPoint {
	for lo, piece := 0, pieceOf(buf); lo < buf.Len; lo += piece {
		list = append(list, collective.PointToPoint{Peer: peer, Recv: recv, Buf: buf.Slice(lo, min(lo+piece, buf.Len))})
	}
	return list
}
