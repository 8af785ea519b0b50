package main

import (
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/gradfusion/gradfusion/collective/monitor"
	"github.com/gradfusion/gradfusion/trainer"
)

// display shows a job's events: a live line on a terminal, log lines elsewhere.
type display struct {
	every    int // steps between log lines
	log      *zap.Logger
	steps    *zap.Logger   // for the lines of steps
	progress *mpb.Progress // nil: no terminal
	bar      *mpb.Bar
	closers  []io.Closer

	mu   sync.Mutex
	last trainer.Event // that the bar shows
}

// displayConfig says where a display writes.
type displayConfig struct {
	every   int         // steps between log lines
	live    io.Writer   // a terminal for the live line, with log lines above it; or nil
	lines   []io.Writer // that receive log lines
	closers []io.Closer // closed with the display
}

func newDisplay(c displayConfig) *display {
	d := &display{every: c.every, closers: c.closers}
	if c.live != nil {
		d.progress = mpb.New(mpb.WithOutput(c.live), mpb.WithWidth(40), mpb.WithRefreshRate(200*time.Millisecond), mpb.ForceAutoRefresh())
	}
	d.steps = newLogger(c.lines) // not above the live line, which shows them
	if d.progress != nil {
		c.lines = append(c.lines, d.progress)
	}
	d.log = newLogger(c.lines)
	return d
}

// newLogger writes a line for each entry: time, level, message, fields.
func newLogger(to []io.Writer) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
	encoding.EncodeLevel = zapcore.CapitalLevelEncoder
	encoding.ConsoleSeparator = " "
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), zapcore.Lock(zapcore.AddSync(io.MultiWriter(to...))), zap.InfoLevel)
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
		d.log.Info("evaluated", append([]zap.Field{zap.Int("step", e.Step), figure("accuracy", e.Accuracy), figure("loss", e.Loss)}, textFigures(e)...)...)
	case trainer.Saved:
		d.log.Info("saved a checkpoint", zap.Int("step", e.Step), zap.String("path", e.Text))
	case trainer.Resumed:
		d.log.Info("resumed from a checkpoint", zap.Int("step", e.Step), zap.String("path", e.Text))
	case trainer.Warned:
		d.log.Warn(e.Text)
	}
}

// found receives what a Monitor found.
func (d *display) found(e monitor.Event) {
	if e.Kind == monitor.Recovered {
		d.log.Info(e.Text)
		return
	}
	d.log.Warn(e.Text)
}

func (d *display) step(e trainer.Event) {
	if d.bar != nil {
		d.mu.Lock()
		d.last = e
		d.mu.Unlock()
		d.bar.SetCurrent(int64(e.Step))
	}
	if e.Step%d.every != 0 && e.Step != e.Total {
		return
	}
	fields := append([]zap.Field{zap.Int("step", e.Step), zap.Int("epoch", e.Epoch), figure("loss", e.Loss), figure("accuracy", e.Accuracy),
		figure("lr", e.LR), figure("samples_per_sec", e.SamplesPerSec)}, textFigures(e)...)
	d.steps.Info("step", append(fields, zap.String("left", e.Remaining.Round(time.Second).String()))...)
}

// textFigures are those that an event has when the samples are texts.
func textFigures(e trainer.Event) (fields []zap.Field) {
	if e.Perplexity != 0 {
		fields = append(fields, figure("perplexity", e.Perplexity))
	}
	if e.TokensPerSec != 0 {
		fields = append(fields, figure("tokens_per_sec", e.TokensPerSec))
	}
	return fields
}

// figure keeps four digits, which is what a line can use.
func figure(name string, v float64) zap.Field {
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	if err != nil {
		short = v
	}
	return zap.Float64(name, short)
}

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
		mpb.BarFillerTrim(), mpb.PrependDecorators(shown(barHead)), mpb.AppendDecorators(shown(barTail)))
	d.bar.SetCurrent(int64(e.Step))
}

// The texts beside the bar keep their widths, so that the bar does not move, and
// leave it some of 80 columns.

func barHead(e trainer.Event) string {
	total := strconv.Itoa(e.Total)
	return fmt.Sprintf("epoch %d/%d step %*d/%s ", e.Epoch, e.Epochs, len(total), e.Step, total)
}

func barTail(e trainer.Event) string {
	if e.Kind != trainer.Stepped {
		return ""
	}
	rate, unit := e.SamplesPerSec, "samples"
	if e.TokensPerSec != 0 {
		rate, unit = e.TokensPerSec, "tokens"
	}
	return fmt.Sprintf(" loss %.3f acc %.3f %4.0f %s/s %6s left", e.Loss, e.Accuracy, rate, unit, brief(e.Remaining))
}

// brief is a duration as exact as an estimate is: in seconds, in minutes from
// one minute on.
func brief(d time.Duration) string {
	if d = d.Round(time.Second); d < time.Minute {
		return d.String()
	}
	minutes := int(d.Round(time.Minute).Minutes())
	if minutes < 60 {
		return fmt.Sprintf("%dm", minutes)
	}
	return fmt.Sprintf("%dh%02dm", minutes/60, minutes%60)
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
	for _, c := range d.closers {
		c.Close()
	}
}
