package nn

import "github.com/gradfusion/gradfusion/device"

// Pool2d takes the maximum or the average over windows of images.
type Pool2d struct {
	stateless
	Name   string // for errors
	Kind   device.PoolKind
	Config PoolConfig
}

// NewMaxPool2d returns a layer that takes maxima.
func NewMaxPool2d(name string, c PoolConfig) *Pool2d {
	return &Pool2d{Name: name, Kind: device.MaxPool, Config: c}
}

// NewAvgPool2d returns a layer that takes averages.
func NewAvgPool2d(name string, c PoolConfig) *Pool2d {
	return &Pool2d{Name: name, Kind: device.AvgPool, Config: c}
}

// Forward applies the layer.
func (l *Pool2d) Forward(t *Tape, x *Var) *Var { return t.Pool(l.Name, l.Kind, x, l.Config) }

// GlobalAvgPool averages each channel of each image: a matrix of images x
// channels.
type GlobalAvgPool struct {
	stateless
	Name string // for errors
}

// Forward applies the layer.
func (l GlobalAvgPool) Forward(t *Tape, x *Var) *Var { return t.GlobalAvg(l.Name, x) }
