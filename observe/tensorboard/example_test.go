package tensorboard_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gradfusion/gradfusion/observe/tensorboard"
)

// A run writes its loss; `tensorboard --logdir DIR` shows it.
func Example() {
	dir, err := os.MkdirTemp("", "run-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	w, err := tensorboard.Open(dir, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range int64(3) {
		if err := w.Scalar(step, "train/loss", 1/float64(step+1)); err != nil {
			fmt.Println(err)
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	fmt.Println(len(files), "event file")
	// Output: 1 event file
}
