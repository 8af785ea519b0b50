//go:build ascend && linux && (amd64 || arm64)

package hccl

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gradfusion/gradfusion/device/ascend"
)

// job is what a Comm and its Subs share: the device, the libraries, and fate.
type job struct {
	config  Config
	library *library
	device  *ascend.Device
	chip    chip

	ctx    context.Context // ends with the first failure, and when the world closes
	cancel context.CancelCauseFunc
	owned  sync.WaitGroup
	told   sync.Once

	mu       sync.Mutex
	suspects []suspicion // the oldest first
}

func newJob(c Config) (*job, error) {
	j := &job{config: c, device: c.Device, chip: chipOf(c.Device.Library().Chip())}
	var err error
	if j.library, err = load(c.Device.Library()); err != nil {
		return nil, err
	}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	return j, nil
}

func (j *job) key(words ...any) string {
	return strings.Join(append([]string{j.config.Namespace, "hccl", fmt.Sprint(j.config.Generation)}, strings.Fields(fmt.Sprintln(words...))...), "/")
}

// watch waits for the news that another rank has failed, from before this one joins.
func (j *job) watch() {
	if w, ok := j.config.Store.(interface {
		Will(ctx context.Context, key string, value []byte) error
	}); ok && j.config.Monitor == nil { // which knows more of who has ended
		_ = w.Will(j.ctx, j.key("failed"), fmt.Appendf(nil, "rank %d has ended without a word", j.config.Rank)) // the time-out remains
	}
	told, err := j.config.Store.Wait(j.ctx, j.key("failed"))
	if err == nil && len(told) == 1 {
		j.cancel(&lost{string(told[0])})
	}
}

// die ends all Comms of this rank and tells the others. Only the first failure
// counts, which it returns.
func (j *job) die(err error) error {
	j.cancel(err)
	first := context.Cause(j.ctx)
	j.told.Do(func() {
		if first != err {
			return // heard of, or closed
		}
		j.tell(err.Error(), "failed")
	})
	return first
}

// tell puts a last word under a key, also of one whose own time is over.
func (j *job) tell(text string, key ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = j.config.Store.Set(ctx, j.key(key...), []byte(text)) // the others' time-outs remain
}
