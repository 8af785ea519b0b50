//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"slices"
	"time"
	"unsafe"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// making says how a communicator comes to be: from a rank table, as a part of the
// one of all ranks, or else by root info.
type making struct {
	table string
	whole uintptr // that of all ranks
	id    uint64  // of a part, another one for each
	mb    int     // its buffer; 0: the library's own choice
}

// create is the part of join that happens on the device's thread. handle is
// written by no other goroutine.
func (n *joining) create(ctx context.Context) (handle uintptr, err error) {
	y := n.library
	rank := uintptr(uint32(slices.Index(n.ranks, n.config.Rank)))
	config := n.commConfig(n.mb)
	if n.turn == 0 && n.table == "" && n.whole == 0 {
		if err := n.failed("HcclGetRootInfo", n.name, ascend.Call(y.HcclGetRootInfo, uintptr(unsafe.Pointer(&n.info)))); err != nil {
			return 0, err
		}
	}
	if err := n.config.Store.Set(ctx, n.key(n.name, "turn", n.turn), n.info[:]); err != nil {
		return 0, reason(ctx, err)
	}
	if n.whole != 0 {
		members := make([]uint32, len(n.ranks))
		for i, r := range n.ranks {
			members[i] = uint32(r)
		}
		code := ascend.Call(y.newer.HcclCreateSubCommConfig, uintptr(unsafe.Pointer(&n.whole)), uintptr(len(members)), uintptr(unsafe.Pointer(&members[0])),
			uintptr(n.id), rank, uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&handle)))
		return handle, n.failed("HcclCreateSubCommConfig", n.name, code)
	}
	if n.table != "" {
		path := append([]byte(n.table), 0)
		code := ascend.Call(y.HcclCommInitClusterInfoConfig, uintptr(unsafe.Pointer(&path[0])), rank, uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&handle)))
		return handle, n.failed("HcclCommInitClusterInfoConfig", n.name, code)
	}
	code := ascend.Call(y.HcclCommInitRootInfoConfig, uintptr(uint32(len(n.ranks))), uintptr(unsafe.Pointer(&n.info)), rank, uintptr(unsafe.Pointer(&config[0])), uintptr(unsafe.Pointer(&handle)))
	return handle, n.failed("HcclCommInitRootInfoConfig", n.name, code)
}

func (j *job) commConfig(mb int) []byte {
	return commConfig(j.library.capability, mb, j.config.Deterministic && !j.chip.first, "")
}

// destroyTime bounds how long a communicator that is busy is asked to end.
const destroyTime = 10 * time.Second

// destroy ends a communicator, again where it is busy. ctx bounds what the library
// takes.
func (j *job) destroy(ctx context.Context, t *ascend.Thread, name string, handle uintptr) error {
	if handle == 0 {
		return nil
	}
	again := time.NewTicker(5 * time.Millisecond) // nothing tells when it is not busy any more
	defer again.Stop()
	for end := time.Now().Add(destroyTime); ; <-again.C {
		var code int32
		err := t.DoContext(ctx, func() error {
			got := ascend.Call(j.library.HcclCommDestroy, handle)
			code = got
			return j.failed("HcclCommDestroy", name, got)
		})
		if err != nil && ctx.Err() != nil || code != resultAgain || time.Now().After(end) {
			return err
		}
	}
}
