package monitor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device"
)

// TestMissingRank: a report after 5 s on every rank names the rank, its last
// call and what it does; the time-out blames it; a late rank ends the stall.
func TestMissingRank(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := newJob(t, 3, time.Minute)
			errs := j.each(func(i int, r *rank) error {
				if err := sum(r.group, "bucket 0"); err != nil {
					return err
				}
				if i == 1 {
					if late {
						time.AfterFunc(10*time.Second, func() { close(j.released) })
					}
					hang(j.released)
				}
				err := sum(r.group, "bucket 1: conv1.weight")
				if i == 0 && !late {
					close(j.released)
				}
				return err
			})
			for i, r := range j.ranks {
				reports := r.of(Stalled)
				require.NotEmpty(t, reports, "rank %d", i)
				require.Regexp(t, `^call 2 of group world \(all-reduce sum of 10 f32 of bucket 1: conv1.weight\) has not ended after [56](\.\d)?s\n`+
					`    ranks 0 and 2 wait in it\n`+
					`    rank 1 has not started it; its last call, 1, ended [4-6](\.\d)?s ago; its goroutines:\n`, reports[0])
				if late {
					require.NoError(t, errs[i])
					require.Len(t, reports, 1)
					continue
				}
				require.Less(t, len(reports), 4, "a stall is told again when it has lasted four times as long")
				require.ErrorContains(t, errs[i], "group world, call 2 (all-reduce sum of 10 f32) of bucket 1: conv1.weight: peer 1: ")
				if i != 1 {
					require.ErrorContains(t, errs[i], "has not started it; its last call, 1, ended", "rank %d", i)
				}
			}
			if late {
				time.Sleep(5 * time.Second)
				require.Len(t, j.ranks[2].of(Recovered), 1)
				require.Regexp(t, `^call 2 of group world has ended after \d+s$`, j.ranks[2].of(Recovered)[0])
			}
			j.close()
		})
	}
}

// TestCycleOfWaits: two ranks that wait in different groups for each other. Each
// stops at its first error: who went on would bring what the other waits for.
func TestCycleOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, 2, 20*time.Second)
		var others [2]*collective.Group
		errs := j.each(func(i int, r *rank) error {
			sub, err := r.group.Sub(context.Background(), []int{0, 1})
			if err != nil {
				return err
			}
			other, ok := sub.(*collective.Group)
			require.True(t, ok)
			others[i] = other
			if i == 1 {
				return sum(other, "")
			}
			return sum(r.group, "")
		})
		for i, r := range j.ranks {
			require.ErrorContains(t, errs[i], "waited 20.5s for it")
			all := strings.Join(r.of(Stalled), "\n")
			require.Contains(t, all, "rank 1 has not started it; it is in call 1 of group world.1 (all-reduce sum of 10 f32)")
			require.Contains(t, all, "rank 0 has not started it; it is in call 2 of group world (all-reduce sum of 10 f32)")
			require.Contains(t, all, "ranks 0 and 1 wait for each other in different calls")
		}
		for _, other := range others {
			require.NoError(t, other.Close())
		}
		j.close()
	})
}

// TestExchangeStalls: a receive whose sender does something else.
func TestExchangeStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, 2, 30*time.Second)
		j.each(func(i int, r *rank) error {
			if i == 0 {
				hang(j.released)
				return nil
			}
			defer close(j.released)
			return collective.Recv(context.Background(), r.group, 0, device.FromF32(make([]float32, 7)))
		})
		require.Regexp(t, `^message 1 of group world \(receive of 7 f32\) has not ended after [56](\.\d)?s\n    rank 1 waits in it\n    rank 0 has not sent it; it has ended no call of this group yet`,
			j.ranks[0].of(Stalled)[0])
		j.close()
	})
}

// TestFrozenRank: its beats stop, which is told at once; it is blamed when the
// time is over, and welcome before.
func TestFrozenRank(t *testing.T) {
	for _, frozen := range []int{0, 2} {
		for _, thaws := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				j := newJob(t, 3, 20*time.Second)
				begin := time.Now()
				var survivors atomic.Int32
				survivors.Store(2)
				errs := j.each(func(i int, r *rank) error {
					if i == frozen {
						r.gate.freeze()
						if thaws {
							time.Sleep(10 * time.Second) // of the bubble's clock
							r.gate.thaw()
						} else {
							hang(j.released)
						}
						return sum(r.group, "")
					}
					err := sum(r.group, "")
					if survivors.Add(-1) == 0 && !thaws {
						close(j.released) // not before both have given up: the frozen one goes on
					}
					return err
				})
				require.LessOrEqual(t, time.Since(begin), 21*time.Second)
				time.Sleep(4 * time.Second)
				for i, r := range j.ranks {
					if i == frozen {
						continue
					}
					silent := r.of(Silent)
					require.Len(t, silent, 1, "rank %d", i)
					require.Contains(t, silent[0], "has not been heard of since")
					if thaws {
						require.NoError(t, errs[i])
						require.Contains(t, strings.Join(r.of(Recovered), "\n"), fmt.Sprintf("rank %d is back after ", frozen))
					} else {
						require.ErrorContains(t, errs[i], "peer "+string(rune('0'+frozen)))
						require.ErrorContains(t, errs[i], "has not been heard of since")
					}
				}
				if !thaws {
					j.ranks[frozen].gate.thaw()
				}
				j.close()
			})
		}
	}
}

// TestDeath: the Groups of the others fail at once.
func TestDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, 3, time.Minute)
		begin := time.Now()
		errs := j.each(func(i int, r *rank) error {
			if i == 1 {
				return j.store.Set(t.Context(), "job/monitor/death", []byte("1")) // as its will does
			}
			return sum(r.group, "bucket 3")
		})
		require.NoError(t, errs[1])
		synctest.Wait()
		for _, i := range []int{0, 2} {
			require.ErrorContains(t, errs[i], "call 1 (all-reduce sum of 10 f32) of bucket 3: peer 1: rank")
			require.ErrorContains(t, errs[i], "lost rank 1: its connection to the rendezvous store broke")
			require.Len(t, j.ranks[i].of(Lost), 1)
		}
		require.Less(t, time.Since(begin), time.Second)
		j.close()
	})
}

// TestGoodOrder: who closes first is not lost.
func TestGoodOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJob(t, 2, time.Minute)
		r := j.ranks[1]
		require.NoError(t, errors.Join(r.group.Close(), r.monitor.Close()))
		require.NoError(t, j.store.Set(t.Context(), "job/monitor/death", []byte("1")))
		time.Sleep(20 * time.Second)
		require.Empty(t, j.ranks[0].events)
		j.close()
	})
}
