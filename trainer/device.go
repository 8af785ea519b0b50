package trainer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/gradfusion/gradfusion/device"
	"github.com/gradfusion/gradfusion/device/cpu"
	"github.com/gradfusion/gradfusion/device/extblas"
	"github.com/gradfusion/gradfusion/device/naive"
	"github.com/gradfusion/gradfusion/trainer/config"
)

// Threads is how many threads compute for a rank that shares its host with
// localRanks ranks. A program that runs ranks should let two more goroutines run
// beside them, for communication and data: see runtime.GOMAXPROCS.
func Threads(c *config.Config, localRanks int) int {
	return c.Compute.Threads.Or(max(runtime.NumCPU()/max(localRanks, 1), 1))
}

// NewDevice makes the device that the compute section names, for a rank that
// shares its host with localRanks ranks. GRADFUSION_OPENBLAS and
// GRADFUSION_ONEDNN, where set, are the files of those libraries.
func NewDevice(c *config.Config, localRanks int) (device.Device, error) {
	name, conv := c.Compute.Kernels, c.Compute.Conv
	foreign := slices.Contains(extblas.Libraries(), name)
	if (foreign || name == "naive") && conv != "auto" && conv != "direct" {
		return nil, fmt.Errorf("compute.conv: %s needs vector kernels, and compute.kernels is %s; use auto or direct", conv, name)
	}
	threads := Threads(c, localRanks)
	alone := threads*max(localRanks, 1) <= runtime.NumCPU()
	switch {
	case name == "naive":
		return naive.New(), nil
	case name == "ascend":
		return nil, errors.New("compute.kernels: ascend needs an opened device: make one with device/ascend/aclnn and put it into Job.Device")
	case foreign:
		d, err := extblas.New(extblas.Config{
			Library: name, Path: os.Getenv("GRADFUSION_" + strings.ToUpper(name)), CPU: cpu.Config{Threads: threads, Alone: alone, Conv: conv},
		})
		if err != nil {
			return nil, fmt.Errorf("compute.kernels: %w", err)
		}
		return d, nil
	}
	d, err := cpu.New(cpu.Config{Threads: threads, Alone: alone, Kernels: name, Conv: conv})
	if err == nil {
		return d, nil
	}
	if d, _ = cpu.New(cpu.Config{Kernels: name}); d != nil {
		_ = d.Close()
		return nil, fmt.Errorf("compute.conv: %w", err)
	}
	return nil, fmt.Errorf("compute.kernels: %w", err)
}
