package launch

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrOrphan says that the launcher has died.
var ErrOrphan = errors.New("the launcher has died")

// WatchParent returns ErrOrphan when the launcher that Run runs in has died, and
// nil when ctx ends. A worker calls it once, in a goroutine of its own, and
// exits on ErrOrphan. On Linux the kernel has killed the worker before.
func WatchParent(ctx context.Context, p Place) error {
	if p.parent == 0 {
		<-ctx.Done()
		return nil
	}
	pipe, err := openPipe(p.parent)
	if err != nil {
		return err
	}
	defer pipe.Close()
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var b [1]byte
	_, err = pipe.Read(b[:]) // nobody writes
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return ErrOrphan
}
