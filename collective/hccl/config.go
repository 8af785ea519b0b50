package hccl

import (
	"context"
	"time"

	"github.com/gradfusion/gradfusion/collective"
	"github.com/gradfusion/gradfusion/device/ascend"
	"github.com/gradfusion/gradfusion/observe"
)

// Store is where ranks meet; collective/store has two.
type Store interface {
	Set(ctx context.Context, key string, value []byte) error
	Wait(ctx context.Context, keys ...string) ([][]byte, error)
}

// Config says which rank this is and how it works. Device, Store, Size and
// Namespace are needed.
type Config struct {
	Rank, Size int
	// Device is opened by the caller and closed after the Comm. No other Comm
	// than Subs of this one uses it.
	Device *ascend.Device
	Store  Store
	// Namespace begins all keys, a job's own.
	Namespace string
	// Name is the Comm's in errors and its lane of spans; "" is "world".
	Name string
	// RankTable is the file of a rank table; "" has the ranks find each other by
	// root info. Sub-communicators always do the latter.
	RankTable string
	// Hosts lists the ranks by host; nil: all are on one.
	Hosts [][]int
	// Timeout bounds each call from when it begins to run, messages of an Exchange from
	// when somebody waits for them. 0: 60 s.
	Timeout time.Duration
	// JoinTimeout bounds the making of Comms; 0: Timeout. HCCL's own bound is
	// HCCL_CONNECT_TIMEOUT, at least two minutes.
	JoinTimeout time.Duration
	// ReduceHalves leaves sums of 16-bit floats to the device, which rounds at
	// every addition; values are divided by the number of ranks before where the
	// mean is asked for. So it is with codecs named f16 and bf16, but for calls of
	// which only the way between hosts is encoded.
	ReduceHalves bool
	// BufferMB is the communicators' buffer, of which each has two on the device;
	// 0: HCCL_BUFFSIZE.
	BufferMB int
	// Deterministic has HCCL reduce in one order, where the chip can.
	Deterministic bool
	// Reducer is the arithmetic of what is folded on the host.
	Reducer collective.Reducer
	// Events receives the spans Call and CallWait; nil drops them.
	Events *observe.Recorder
	// Monitor watches the Comm and its Subs; nil: nobody does. One that finds a rank
	// gone ends them.
	Monitor collective.Monitor
	// Generation counts regroupings of the job.
	Generation uint32
	// Getenv looks up ASCEND_PROCESS_LOG_PATH and HOME for errors; nil: neither.
	Getenv func(string) string
}

func (c Config) filled() Config {
	if c.Name == "" {
		c.Name = "world"
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.JoinTimeout == 0 {
		c.JoinTimeout = c.Timeout
	}
	if c.Hosts == nil {
		all := make([]int, c.Size)
		for r := range all {
			all[r] = r
		}
		c.Hosts = [][]int{all}
	}
	return c
}
