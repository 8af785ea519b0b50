package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// table holds the keys and who waits for them. deliver functions are called
// with the lock held and must not block.
type table struct {
	mu      sync.Mutex
	values  map[string][]byte
	waiting map[string][]*waiter
}

// waiter is one request that is answered when its last missing key appears.
type waiter struct {
	keys    []string
	missing int // how many of keys, repeats counted, are not there
	deliver func(values [][]byte, missing []string)
}

func newTable() *table {
	return &table{values: map[string][]byte{}, waiting: map[string][]*waiter{}}
}

func (t *table) set(key string, value []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(key, value)
}

func (t *table) put(key string, value []byte) {
	_, known := t.values[key]
	t.values[key] = value
	if known {
		return
	}
	woken := t.waiting[key]
	delete(t.waiting, key)
	for _, w := range woken {
		if w.missing--; w.missing == 0 {
			w.deliver(t.collect(w.keys), nil)
		}
	}
}

func (t *table) collect(keys []string) [][]byte {
	values := make([][]byte, len(keys))
	for i, k := range keys {
		values[i] = t.values[k]
	}
	return values
}

// wait calls w.deliver now or when all keys are there.
func (t *table) wait(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range w.keys {
		if _, ok := t.values[k]; !ok {
			w.missing++
			t.waiting[k] = append(t.waiting[k], w)
		}
	}
	if w.missing == 0 {
		w.deliver(t.collect(w.keys), nil)
	}
}

// cancel delivers the missing keys, unless w was served before.
func (t *table) cancel(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.missing == 0 {
		return
	}
	var missing []string
	for _, k := range w.keys {
		if _, ok := t.values[k]; ok {
			continue
		}
		missing = append(missing, k)
		rest := slices.DeleteFunc(t.waiting[k], func(other *waiter) bool { return other == w })
		if len(rest) == 0 {
			delete(t.waiting, k)
		} else {
			t.waiting[k] = rest
		}
	}
	w.missing = 0
	w.deliver(nil, missing)
}

func (t *table) add(key string, delta int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := delta
	if old, ok := t.values[key]; ok {
		n, err := strconv.ParseInt(string(old), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("key %s holds no counter", key)
		}
		sum += n
	}
	t.put(key, strconv.AppendInt(nil, sum, 10))
	return sum, nil
}

func (t *table) delete(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.values[key]
	delete(t.values, key)
	return ok
}

func (t *table) keys(prefix string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []string
	for k := range t.values {
		if strings.HasPrefix(k, prefix) {
			found = append(found, k)
		}
	}
	slices.Sort(found)
	return found
}
