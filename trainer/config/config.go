package config

import (
	"time"

	"github.com/gradfusion/gradfusion/data"
)

// Config is every setting of a run. Its fields mirror the YAML: the tag is the
// key, Describe says what it means. Default has the defaults; the zero value
// is not a usable Config.
type Config struct {
	Model      Model       `yaml:"model"`
	Data       data.Config `yaml:"data"`
	Optim      Optim       `yaml:"optim"`
	Train      Train       `yaml:"train"`
	Parallel   Parallel    `yaml:"parallel"`
	Fusion     Fusion      `yaml:"fusion"`
	AMP        AMP         `yaml:"amp"`
	Collective Collective  `yaml:"collective"`
	Compute    Compute     `yaml:"compute"`
	Launch     Launch      `yaml:"launch"`
	Checkpoint Checkpoint  `yaml:"checkpoint"`
	Observe    Observe     `yaml:"observe"`

	file      string              // the file that was loaded, as it was found
	positions map[string]Position // where each given key was written
	files     int                 // how many were read
}

// Model names the network and holds the settings of the models that have any;
// zero leaves a setting to the model.
type Model struct {
	Name         string  `yaml:"name"`
	Recompute    string  `yaml:"recompute"`
	Stem         string  `yaml:"stem"`          // ResNet-18 and larger: imagenet or small
	Shortcut     string  `yaml:"shortcut"`      // ResNets: A or B
	Stages       []int   `yaml:"stages"`        // ResNets: residual blocks in each stage
	BaseChannels int     `yaml:"base_channels"` // ResNets: channels of the first stage
	Hidden       []int   `yaml:"hidden"`        // mlp, cnn: widths of the hidden layers
	Layers       int     `yaml:"layers"`        // gpt: blocks
	Heads        int     `yaml:"heads"`         // gpt: attention heads
	Width        int     `yaml:"width"`         // gpt: features of a token
	Context      int     `yaml:"context"`       // gpt: tokens of a window
	Dropout      float64 `yaml:"dropout"`
	// gpt: a matrix of its own for the logits, and gradients of the embedding that
	// travel by rows
	SparseEmbedding bool `yaml:"sparse_embedding"`
}

// Optim is the optimizer and its learning rate over time.
type Optim struct {
	Name                string   `yaml:"name"`
	LR                  float64  `yaml:"lr"`
	Momentum            float64  `yaml:"momentum"`
	Dampening           float64  `yaml:"dampening"` // momentum
	Beta1               float64  `yaml:"beta1"`     // adam, adamw, lamb
	Beta2               float64  `yaml:"beta2"`
	Alpha               float64  `yaml:"alpha"` // rmsprop
	Trust               float64  `yaml:"trust"` // lars
	Epsilon             float64  `yaml:"epsilon"`
	WeightDecay         float64  `yaml:"weight_decay"`
	DecayNormsAndBiases bool     `yaml:"decay_norms_and_biases"`
	ClipNorm            float64  `yaml:"clip_norm"` // 0: no clipping
	Lazy                bool     `yaml:"lazy"`      // model.sparse_embedding
	Schedule            Schedule `yaml:"schedule"`
}

// Schedule is the learning rate's course. In YAML it is a mapping, or a name
// alone, which leaves the rest as it was. A length is a share of the run below
// 1, and a number of steps otherwise.
type Schedule struct {
	Name       string    `yaml:"name"`
	Warmup     float64   `yaml:"warmup"`
	Gamma      float64   `yaml:"gamma"`      // step, multistep: the factor of a drop
	StepSize   float64   `yaml:"step_size"`  // step: length between drops
	Milestones []float64 `yaml:"milestones"` // multistep: where the drops are
	Power      float64   `yaml:"power"`      // polynomial
	Start      float64   `yaml:"start"`      // onecycle: the beginning as a share of lr
	Final      float64   `yaml:"final"`      // linear, cosine, polynomial, onecycle: the end as a share of lr
}

// Train says how long and in which pieces.
type Train struct {
	Epochs        int    `yaml:"epochs"`
	Steps         int    `yaml:"steps"` // 0: by epochs
	Seed          uint64 `yaml:"seed"`
	MicroBatch    Count  `yaml:"micro_batch"` // 0: auto; see Batches
	Accumulate    Count  `yaml:"accumulate"`
	Deterministic string `yaml:"deterministic"` // off or world
	EvalEvery     Every  `yaml:"eval_every"`
	LocalSGD      int    `yaml:"local_sgd"`
}

// Parallel is the grid of ranks.
type Parallel struct {
	Data           Count  `yaml:"data"` // columns; 0: what the world leaves
	Pipeline       int    `yaml:"pipeline"`
	Tensor         int    `yaml:"tensor"`
	Schedule       string `yaml:"schedule"`
	VirtualStages  int    `yaml:"virtual_stages"`
	Cuts           Names  `yaml:"cuts"`
	Recompute      []int  `yaml:"recompute"` // stages
	ActivationWire string `yaml:"activation_wire"`
	ShardOptimizer Switch `yaml:"shard_optimizer"`
	SyncBatchNorm  bool   `yaml:"sync_batchnorm"`
	DryRun         bool   `yaml:"dry_run"`
}

// Fusion is the buckets of gradients. A megabyte is 2^20 bytes.
type Fusion struct {
	ThresholdMB    Megabytes `yaml:"threshold_mb"` // 0: auto; see BucketMB
	FirstMB        float64   `yaml:"first_mb"`
	Overlap        bool      `yaml:"overlap"`
	OverlapForward Switch    `yaml:"overlap_forward"`
	Wire           Wire      `yaml:"wire"`
	WireScope      string    `yaml:"wire_scope"`
	FindUnused     bool      `yaml:"find_unused"`
	CheckEvery     int       `yaml:"check_every"`
}

// Wire is the format of gradients on the wire. In YAML it is a name, or a
// mapping with the settings of the format.
type Wire struct {
	Name  string `yaml:"name"`
	Rank  int    `yaml:"rank"`  // powersgd
	Start int    `yaml:"start"` // powersgd, topk: first compressed step
}

// AMP is mixed precision.
type AMP struct {
	Level             string    `yaml:"level"`
	Type              string    `yaml:"type"`
	LossScale         LossScale `yaml:"loss_scale"` // 0: dynamic
	KeepBatchNormFP32 bool      `yaml:"keep_batchnorm_fp32"`
}

// Collective is the communication between ranks.
type Collective struct {
	Backend        string        `yaml:"backend"`
	Transport      string        `yaml:"transport"`
	Algorithm      string        `yaml:"algorithm"`
	Pack           Switch        `yaml:"pack"`
	Timeout        time.Duration `yaml:"timeout"`
	Stall          time.Duration `yaml:"stall"`
	Heartbeat      time.Duration `yaml:"heartbeat"`
	Retry          int           `yaml:"retry"`
	SocketsPerPeer int           `yaml:"sockets_per_peer"`
	Segment        Bytes         `yaml:"segment"`   // 0: auto
	BufferMB       Megabytes     `yaml:"buffer_mb"` // 0: auto
	Interface      string        `yaml:"interface"`
	Ports          Span          `yaml:"ports"` // 0: auto
	RankTable      string        `yaml:"rank_table"`
	DeviceHalves   bool          `yaml:"device_halves"`
	Checksum       bool          `yaml:"checksum"`
	TLS            TLS           `yaml:"tls"`
	Faults         []string      `yaml:"faults"`
}

// TLS is the encryption of connections. In YAML it is a name, or a mapping with
// the name and its files.
type TLS struct {
	Name string `yaml:"name"` // off, auto or files
	Cert string `yaml:"cert"` // files: PEM, as the others
	Key  string `yaml:"key"`
	CA   string `yaml:"ca"`
}

// Compute is how one rank calculates.
type Compute struct {
	Threads Count  `yaml:"threads"` // 0: cores / local ranks
	Kernels string `yaml:"kernels"`
	Conv    string `yaml:"conv"`
}

// Launch is how the processes of a job come to be.
type Launch struct {
	NProc       Span     `yaml:"nproc"`
	Rendezvous  string   `yaml:"rendezvous"`
	Hosts       []string `yaml:"hosts"`
	Placement   string   `yaml:"placement"`
	MaxRestarts int      `yaml:"max_restarts"`
	BindCores   Switch   `yaml:"bind_cores"`
}

// Checkpoint is what is saved. Without Dir nothing is.
type Checkpoint struct {
	Dir      string `yaml:"dir"`
	Every    Every  `yaml:"every"`
	Keep     int    `yaml:"keep"`
	KeepBest bool   `yaml:"keep_best"`
	Async    bool   `yaml:"async"`
	Fallback bool   `yaml:"fallback"`
}

// Observe is what a run shows and leaves behind.
type Observe struct {
	RunDir      string `yaml:"run_dir"` // auto: a new directory under runs/; "": none
	LogEvery    int    `yaml:"log_every"`
	Trace       bool   `yaml:"trace"`
	TensorBoard bool   `yaml:"tensorboard"`
	Metrics     string `yaml:"metrics"`
	Dashboard   string `yaml:"dashboard"`
	AllRanks    bool   `yaml:"all_ranks"`
}
