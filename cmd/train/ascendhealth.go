package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gradfusion/gradfusion/collective/hccl"
	"github.com/gradfusion/gradfusion/device/ascend"
)

// explain says at start what the ranks run on and what the environment tells it.
// Lines that begin with the name of the program are last words to a launcher.
func (a *accelerator) explain(library *ascend.Library, size int) {
	known, warnings := hccl.Environment(a.environ)
	text := fmt.Sprintf("ascend: %d ranks on devices: %s, CANN %s", size, library.Chip(), library.Version())
	if len(known) > 0 {
		text += "; " + strings.Join(known, " ")
	}
	io.WriteString(a.out, wrap(text, width))
	for _, w := range warnings {
		a.warn(w)
	}
}

func (a *accelerator) warn(text string) { io.WriteString(a.out, wrap("ascend: "+text, width)) }

// smiPatience bounds the question to npu-smi, which takes a second or two.
const smiPatience = 20 * time.Second

// inspect asks npu-smi, where it is installed, about a device before it is opened.
// It refuses one that npu-smi calls broken, and warns of one that is not well or
// that other processes use, which HCCL may refuse or share. It returns what is
// known of the device, or nothing.
func (a *accelerator) inspect(index int) (said string, err error) {
	program := a.program("npu-smi")
	if program == "" {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), smiPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "info")
	cmd.Env, cmd.WaitDelay = a.environ, time.Second
	out, err := cmd.Output()
	if err != nil {
		a.warn(fmt.Sprintf("npu-smi info failed, so it says nothing of device %d: %v", index, err))
		return "", nil
	}
	all, err := ascend.ParseSMI(string(out))
	if err != nil {
		a.warn(err.Error())
		return "", nil
	}
	at := physical(lookup(a.environ)("ASCEND_RT_VISIBLE_DEVICES"), index)
	if at >= len(all) {
		return fmt.Sprintf("it lists devices 0 to %d", len(all)-1), nil
	}
	reading := all[at]
	switch {
	case reading.Fails():
		return "", fmt.Errorf("device %d is not healthy (npu-smi: %v)", index, reading)
	case reading.Health != "OK" || len(reading.Processes) > 0:
		a.warn(fmt.Sprintf("device %d, which this rank takes, is not idle and well (npu-smi: %v)", index, reading))
	}
	return reading.String(), nil
}

// physical is the host's number of a device of this process.
func physical(visible string, index int) int {
	if visible == "" {
		return index
	}
	if list := strings.Split(visible, ","); index < len(list) {
		if n, err := strconv.Atoi(strings.TrimSpace(list[index])); err == nil && n >= 0 {
			return n
		}
	}
	return index
}

// program finds a program as the environment's PATH says; "" where there is none.
func (a *accelerator) program(name string) string {
	for _, dir := range filepath.SplitList(lookup(a.environ)("PATH")) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
