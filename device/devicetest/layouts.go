package devicetest

import (
	"fmt"

	"github.com/gradfusion/gradfusion/device"
)

func layoutExperiments() []experiment {
	layouts := []device.Layout{device.Plain, device.Blocked16}
	var all []experiment
	for _, c := range []int{1, 3, 16, 17, 33, 48} {
		all = append(all, experiment{fmt.Sprintf("reorder %d channels", c), func(l *lab, k device.Kernels) {
			for _, from := range layouts {
				for _, to := range layouts {
					src := l.image(from, 2, c, 3, 5)
					dst := l.buffer(device.F32, device.ImageLen(to, 2, c, 3, 5))
					k.Reorder(dst, to, src, from, 2, c, 3, 5)
					l.keepImage(from.String()+" to "+to.String(), dst, to, 2, c, 3, 5, 0)
				}
			}
		}})
	}
	for _, counts := range [][]int{{1, 2}, {16, 16}, {3, 16, 5}, {32, 17, 16}, {16, 48}} {
		for _, layout := range layouts {
			all = append(all, experiment{fmt.Sprintf("channels %v %s", counts, layout), func(l *lab, k device.Kernels) { channels(l, k, counts, layout) }})
		}
	}
	return all
}

// channels puts tensors one after the other and takes them out again.
func channels(l *lab, k device.Kernels, counts []int, layout device.Layout) {
	const n, h, w = 2, 3, 4
	total := 0
	for _, c := range counts {
		total += c
	}
	joined := l.buffer(device.F32, device.ImageLen(layout, n, total, h, w))
	at := 0
	for _, c := range counts {
		k.CopyChannels(layout, joined, total, at, l.image(layout, n, c, h, w), c, n, h, w)
		at += c
	}
	l.keepImage("joined", joined, layout, n, total, h, w, 0)
	at = 0
	for _, c := range counts {
		for _, accumulate := range []bool{false, true} {
			part := l.targetImage(layout, n, c, h, w, accumulate)
			k.ExtractChannels(layout, part, c, joined, total, at, n, h, w, accumulate)
			l.keepImage(fmt.Sprintf("part at %d", at), part, layout, n, c, h, w, 0)
		}
		at += c
	}
}
