package launch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processors lists those that this process may use.
func processors() ([]processor, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("which processors there are cannot be read: %w", err)
	}
	var out []processor
	for i := 0; len(out) < set.Count(); i++ {
		if set.IsSet(i) {
			// Without topology, as in some containers, each is a core.
			out = append(out, processor{i, topology(i, "physical_package_id", 0), topology(i, "core_id", i)})
		}
	}
	return out, nil
}

func topology(number int, name string, unknown int) int {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/%s", number, name))
	if err != nil {
		return unknown
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return unknown
	}
	return n
}

// bind binds every thread of this process. A thread inherits from the one that starts
// it, so when a look at all of them finds no unbound one, no more can come.
func bind(numbers []int) error {
	set := setOf(numbers)
	for range 100 {
		unbound := false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("the threads of this process cannot be listed: %w", err)
		}
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				continue
			}
			var has unix.CPUSet
			if err := unix.SchedGetaffinity(id, &has); errors.Is(err, unix.ESRCH) || err == nil && has == set {
				continue // it has ended, or it is bound
			}
			unbound = true
			if err := bindThread(id, numbers); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
		if !unbound {
			return nil
		}
	}
	return fmt.Errorf("binding to processors %v: threads do not stay there", numbers)
}

// bindThread binds a thread; 0 is the calling one.
func bindThread(id int, numbers []int) error {
	set := setOf(numbers)
	if err := unix.SchedSetaffinity(id, &set); err != nil {
		return fmt.Errorf("binding to processors %v: %w", numbers, err)
	}
	return nil
}

func setOf(numbers []int) (set unix.CPUSet) {
	for _, n := range numbers {
		set.Set(n)
	}
	return set
}
