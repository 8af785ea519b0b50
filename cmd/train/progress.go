package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/gradfusion/gradfusion/trainer"
)

// display shows a job's events: a live line on a terminal, log lines elsewhere.
type display struct {
	every    int // steps between log lines
	log      *zap.Logger
	progress *mpb.Progress // nil: no terminal
	bar      *mpb.Bar

	mu   sync.Mutex
	last trainer.Event // that the bar shows
}

// newDisplay writes to w. A nil w makes a display that shows nothing.
func newDisplay(w io.Writer, terminal bool, every int) *display {
	d := &display{every: every, log: zap.NewNop()}
	if w == nil {
		return d
	}
	if terminal {
		d.progress = mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond), mpb.ForceAutoRefresh())
		w = d.progress // so that log lines appear above the bar
	}
	d.log = newLogger(w)
	return d
}

// newLogger writes a line for each entry: time, level, message, fields.
func newLogger(w io.Writer) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	encoding.EncodeLevel = zapcore.CapitalLevelEncoder
	encoding.ConsoleSeparator = " "
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(w)), zap.InfoLevel)
	return zap.New(core)
}

// on receives the trainer's events.
func (d *display) on(e trainer.Event) {
	switch e.Kind {
	case trainer.Started:
		d.log.Info("training starts", zap.Int("ranks", e.World), zap.Int("steps", e.Total), zap.Int("epochs", e.Epochs), zap.String("device", e.Text))
		d.startBar(e)
	case trainer.Stepped:
		d.step(e)
	case trainer.Evaluated:
		d.log.Info("evaluated", zap.Int("step", e.Step), figure("accuracy", e.Accuracy), figure("loss", e.Loss))
	case trainer.Saved:
		d.log.Info("saved a checkpoint", zap.Int("step", e.Step), zap.String("path", e.Text))
	case trainer.Resumed:
		d.log.Info("resumed from a checkpoint", zap.Int("step", e.Step), zap.String("path", e.Text))
	case trainer.Warned:
		d.log.Warn(e.Text)
	}
}

func (d *display) step(e trainer.Event) {
	if d.bar != nil {
		d.mu.Lock()
		d.last = e
		d.mu.Unlock()
		d.bar.SetCurrent(int64(e.Step))
		return
	}
	if e.Step%d.every != 0 && e.Step != e.Total {
		return
	}
	d.log.Info("step", zap.Int("step", e.Step), zap.Int("epoch", e.Epoch), figure("loss", e.Loss), figure("accuracy", e.Accuracy),
		figure("lr", e.LR), figure("samples_per_sec", e.SamplesPerSec), zap.String("left", e.Remaining.Round(time.Second).String()))
}

// figure keeps four digits, which is what a line can use.
func figure(name string, v float64) zap.Field {
	return zap.Stringer(name, rounded(v))
}

type rounded float64

func (r rounded) String() string { return fmt.Sprintf("%.4g", float64(r)) }

// startBar draws the live line: epoch, step, bar, loss, accuracy, speed, time.
func (d *display) startBar(e trainer.Event) {
	if d.progress == nil {
		return
	}
	d.last = e
	shown := func(format func(trainer.Event) string) decor.Decorator {
		return decor.Any(func(decor.Statistics) string {
			d.mu.Lock()
			defer d.mu.Unlock()
			return format(d.last)
		})
	}
	d.bar = d.progress.AddBar(int64(e.Total),
		mpb.PrependDecorators(shown(barHead)), mpb.AppendDecorators(shown(barTail)))
	d.bar.SetCurrent(int64(e.Step))
}

func barHead(e trainer.Event) string {
	return fmt.Sprintf("epoch %d/%d  step %d/%d ", e.Epoch, e.Epochs, e.Step, e.Total)
}

func barTail(e trainer.Event) string {
	if e.Kind != trainer.Stepped {
		return ""
	}
	return fmt.Sprintf(" loss %.4f  acc %.3f  %.0f samples/s  %s left", e.Loss, e.Accuracy, e.SamplesPerSec, e.Remaining.Round(time.Second))
}

// close ends the live line where it stands and flushes.
func (d *display) close() {
	if d.bar != nil {
		d.bar.Abort(false)
	}
	if d.progress != nil {
		d.progress.Wait()
	}
	d.log.Sync() // stderr may not support it, and then needs none
}
