//go:build !linux

package launch

func processors() ([]processor, error) { return nil, nil }

func bind([]int) error { return nil }

func bindThread(int, []int) error { return nil }
