package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gradfusion/gradfusion/collective/store"
)

// ErrRanks is wrapped by Connect's error when the processes of a job do not agree
// on who is which rank of how many.
var ErrRanks = errors.New("the job's processes contradict each other")

// roll is the call at a job's start in which every rank answers once. It keeps in
// the store, under the job's name:
//
//	roll/rank/R/count    how many processes have claimed rank R
//	roll/rank/R/N        the N-th of them
//	roll/rank/R/N/gone   it has died since, and another may take its place
//	roll/size/S/R        rank R believes in S ranks
//	roll/refused         why the job cannot start
type roll struct {
	Place
	store *store.Client
	self  string // this process, for people
}

// callRoll returns when all ranks of the job have answered, or says what is wrong
// with them, on all ranks that wait.
func (p Place) callRoll(ctx context.Context, s *store.Client) error {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	r := &roll{p, s, fmt.Sprintf("process %d on %s", os.Getpid(), host)}
	if err := r.claim(ctx); err != nil {
		return err
	}
	if err := r.compareSizes(ctx); err != nil {
		return err
	}
	return r.await(ctx)
}

func (r *roll) key(words ...any) string {
	key := r.Job + "/roll"
	for _, word := range words {
		key += fmt.Sprint("/", word)
	}
	return key
}

// claim takes this process's rank, unless another that lives has it.
func (r *roll) claim(ctx context.Context) error {
	n, err := r.store.Add(ctx, r.key("rank", r.Rank, "count"), 1)
	if err != nil {
		return err
	}
	own := r.key("rank", r.Rank, n)
	if err := r.store.Will(ctx, own+"/gone", nil); err != nil {
		return err
	}
	if err := r.store.Set(ctx, own, []byte(r.self)); err != nil {
		return err
	}
	for other := range n - 1 {
		key := r.key("rank", r.Rank, other+1)
		name, err := r.store.Get(ctx, key)
		if err != nil {
			return err
		}
		gone, err := r.store.Keys(ctx, key+"/gone")
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return r.refuse(ctx, fmt.Sprintf("%s and %s both have rank %d (RANK=%d); every process needs a rank of its own, 0 to %d", name, r.self, r.Rank, r.Rank, r.Size-1))
		}
	}
	return nil
}

// compareSizes tells this process's number of ranks and looks for another.
func (r *roll) compareSizes(ctx context.Context) error {
	claim := fmt.Sprintf("rank %d (%s)", r.Rank, r.self)
	if err := r.store.Set(ctx, r.key("size", r.Size, r.Rank), []byte(claim)); err != nil {
		return err
	}
	prefix := r.key("size") + "/"
	keys, err := r.store.Keys(ctx, prefix)
	if err != nil {
		return err
	}
	for _, key := range keys {
		size, _, _ := strings.Cut(strings.TrimPrefix(key, prefix), "/")
		if size == strconv.Itoa(r.Size) {
			continue
		}
		other, err := r.store.Get(ctx, key)
		if err != nil {
			return err
		}
		return r.refuse(ctx, fmt.Sprintf("%s was started for a job of %s ranks (WORLD_SIZE=%s) and %s for one of %d (WORLD_SIZE=%d); all need the same number", other, size, size, claim, r.Size, r.Size))
	}
	return nil
}

// refuse tells all that wait why the job cannot start.
func (r *roll) refuse(ctx context.Context, why string) error {
	if err := r.store.Set(ctx, r.key("refused"), []byte(why)); err != nil {
		return err
	}
	return r.refused(why)
}

func (r *roll) refused(why string) error {
	return fmt.Errorf("rank %d of %d: %w: %s", r.Rank, r.Size, ErrRanks, why)
}

// await waits until all ranks have answered or one has refused.
func (r *roll) await(ctx context.Context) error {
	waiting, cancel := context.WithCancelCause(ctx)
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		if why, err := r.store.Get(waiting, r.key("refused")); err == nil {
			cancel(r.refused(string(why)))
		}
	}()
	keys := make([]string, r.Size)
	for rank := range keys {
		keys[rank] = r.key("size", r.Size, rank)
	}
	_, err := r.store.Wait(waiting, keys...)
	cancel(nil)
	<-listened
	if err == nil {
		return nil
	}
	if cause := context.Cause(waiting); errors.Is(cause, ErrRanks) {
		return cause
	}
	var late *store.WaitError
	if !errors.As(err, &late) {
		return err
	}
	var missing []string
	for rank, key := range keys {
		if slices.Contains(late.Missing, key) {
			missing = append(missing, strconv.Itoa(rank))
		}
	}
	if len(missing) == 0 {
		return err
	}
	who := "ranks"
	if len(missing) == 1 {
		who = "rank"
	}
	return fmt.Errorf("rank %d of %d: %s %s did not come to the job's store at %s: %w", r.Rank, r.Size, who, strings.Join(missing, ", "), late.Address, late.Err)
}
