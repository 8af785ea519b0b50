package config

import (
	"slices"
	"strings"
)

// Setting is one key with its default as YAML text and what it means.
type Setting struct{ Key, Default, Meaning string }

// Describe lists every key in the order of the YAML, and says what of it this
// version would refuse.
func Describe() []Setting {
	defaults, missing := Default(), notYet()
	var out []Setting
	for line := range strings.SplitSeq(strings.TrimSpace(meanings), "\n") {
		key, meaning, _ := strings.Cut(line, "  ")
		out = append(out, Setting{Key: key, Default: leafText(defaults.lookup(key)), Meaning: strings.TrimSpace(meaning) + missing[key]})
	}
	return out
}

// notYet has a remark for each key that this version refuses, or of whose names
// it refuses some.
func notYet() map[string]string {
	remarks := map[string]string{}
	for _, row := range unsupported() {
		remarks[row.key] = " (not in this version yet)"
	}
	for _, choice := range choices() {
		later := slices.DeleteFunc(slices.Clone(choice.all), func(name string) bool { return slices.Contains(choice.have, name) })
		if len(later) > 0 {
			remarks[choice.key] = " (not in this version yet: " + strings.Join(later, ", ") + ")"
		}
	}
	return remarks
}

const meanings = `
model.name  the network: mlp, cnn, resnet20|32|44|56|110 (CIFAR form), resnet18|34|50|101|152 (ImageNet form), gpt
model.recompute  none, or blocks: forget activations inside a block and compute them again in the backward pass
model.stem  of resnet18 and larger: "" or imagenet for large images, small for 32 x 32
model.shortcut  of resnets, where the shape changes: "" or B is a 1 x 1 convolution, A subsamples and pads
model.stages  of resnets: residual blocks in each stage; [] is the model's own
model.base_channels  of resnets: channels of the first stage; 0 is the model's own
model.hidden  of mlp and cnn: widths of the hidden layers; [] is the model's own
model.layers  of gpt: blocks; 0 is 4
model.heads  of gpt: attention heads, which divide the width; 0 is 4
model.width  of gpt: features of a token; 0 is 128
model.context  of gpt: tokens that it sees at once, and that a sample has; 0 is 128
model.dropout  probability before the last layer; in mlp after each hidden layer, in gpt after the embedding and in each block
model.sparse_embedding  gpt: a matrix of its own for the logits, so that the gradient of the token embedding travels by rows where that is less
data.name  the data set; "train data list" shows them
data.path  directory with the set's files, of a text its file; "" is the embedded copy
data.batch  samples of one optimizer step, over all ranks
data.augment  none, flip, crop-flip or crop-flip:PIXELS
data.workers  goroutines per rank that prepare batches
data.tokens  of a text: bytes, or characters (of UTF-8)
data.test_share  of a text: the part at its end that is kept for evaluation
data.channels  of synthetic: channels of an image; 0 is 3
data.height  of synthetic: rows of an image; 0 is 32
data.width  of synthetic: columns of an image; 0 is 32
data.classes  of synthetic: number of classes; 0 is 10
data.vocabulary  of synthetic-text: number of different tokens; 0 is 256
data.train_samples  of what is made up: samples to train on; 0 is 1024
data.test_samples  of what is made up: samples to evaluate on; 0 is 256
optim.name  sgd, momentum, nesterov, adam, adamw, rmsprop, adagrad, lars, lamb
optim.lr  the learning rate before the schedule's factor
optim.momentum  of momentum, nesterov and lars, and of rmsprop, where it is 0 unless given; below 1
optim.dampening  of momentum
optim.beta1  of adam, adamw and lamb: decay of the first moment
optim.beta2  of adam, adamw and lamb: decay of the second moment
optim.alpha  of rmsprop: decay of the mean square
optim.trust  of lars: how large an update is beside the weights at optim.lr 1
optim.epsilon  of adam, adamw, rmsprop, adagrad (1e-10 unless given) and lamb (1e-6 unless given): added to the denominator
optim.weight_decay  factor of the decay; adamw and lamb decay the weights themselves, the others add to the gradient
optim.decay_norms_and_biases  let weight decay act on norms and biases too
optim.clip_norm  largest global norm of the gradients; 0 clips nothing
optim.lazy  with model.sparse_embedding: rows of the embedding that a step does not look up keep weights and moments
optim.schedule.name  constant, step, multistep, linear, cosine, polynomial, onecycle
optim.schedule.warmup  linear rise at the start, of onecycle along half a cosine (0.3 unless given): a share of the run below 1, a number of steps otherwise
optim.schedule.gamma  of step and multistep: the factor of a drop
optim.schedule.step_size  of step: length between drops, a share of the run or a number of steps
optim.schedule.milestones  of multistep: where the drops are, shares of the run or numbers of steps
optim.schedule.power  of polynomial: the exponent
optim.schedule.start  of onecycle: the first rate as a share of optim.lr
optim.schedule.final  of linear, cosine, polynomial and onecycle: the last rate as a share of optim.lr
train.epochs  passes over the training set
train.steps  optimizer steps, whatever the epochs; 0 goes by epochs
train.seed  of weights, order of samples, augmentation and dropout
train.micro_batch  samples of one forward pass; auto is batch / columns, min(32, batch) under deterministic: world
train.accumulate  micro-batches of a column per step, another way to write micro_batch; auto follows from it
train.deterministic  off, or world: equal to the bit for any number of ranks, transport, threshold and threads
train.eval_every  "20 steps", "1 epoch", "10m" or never; after the last step in any case
train.local_sgd  let the ranks train apart and average their parameters every so many steps, and before an evaluation or a checkpoint; the optimizer's state stays each rank's own, as do the losses that are shown in between, but is averaged where a run is saved; 0 sums gradients at every step
parallel.data  data-parallel columns; auto is what pipeline and tensor leave of the ranks
parallel.pipeline  ranks that a model is cut over, each of which has a stage or several
parallel.tensor  ranks that share each layer of a gpt or mlp: heads, hidden features, vocabulary or classes; partial sums are rounded, so equal bits are for one number of them
parallel.schedule  gpipe, 1f1b, interleaved, zb-h1, zb-v, looped-bfs, dualpipe-v, or a CSV file
parallel.virtual_stages  stages per rank under interleaved and looped-bfs
parallel.cuts  blocks that begin a stage, but the first one, by name or index: [3, 6]; auto balances time and memory, as measured at the start, or counted under deterministic: world; or a CSV file with costs
parallel.recompute  stages, from 0, whose blocks forget their activations as under model.recompute: blocks; the first ones hold most micro-batches
parallel.activation_wire  format of activations and their gradients between the ranks of a pipeline: f32, f16, bf16; with 16 bits the result depends on the cuts
parallel.shard_optimizer  keep each part of the optimizer's state on one rank only, which updates that part for all; saves memory, computes the same; auto does where all ranks share memory and the model has a million parameters, which also saves time
parallel.sync_batchnorm  BatchNorm statistics over all columns
parallel.dry_run  print grid, idle time, memory and bytes per link, and train nothing
fusion.threshold_mb  gradients are summed in buckets of this size, in 2^20 bytes; auto: 16, but 2 on 2 to 8 ranks of several hosts; bucket_mb in summary.json says which
fusion.first_mb  size of the first bucket, smaller so that communication starts early
fusion.overlap  sum buckets while the backward pass goes on
fusion.overlap_forward  let sums go on beside the next forward pass, which waits for each layer's; auto does between hosts, where nothing else needs all sums at once (clip_norm, lars, lamb, a cut model or optimizer)
fusion.wire.name  format of gradients on the wire: f32, f16, bf16, int8, int4, topk, powersgd
fusion.wire.rank  of powersgd: rank of the factors; 0 means 4
fusion.wire.start  of powersgd and topk: the first step that is compressed, in which topk's warm-up begins; 0 means 1 for topk, and for powersgd a twentieth of the run, at least 10
fusion.wire_scope  all, or across-hosts: full precision inside a host
fusion.find_unused  count parameters without a gradient as zero instead of stopping
fusion.check_every  compare the parameters of all ranks every so many steps; 0 does at the start only
amp.level  O0: float32; O1: products read 16 bits; O2: activations and the weights that are read too, over float32 masters; O3: weights have no masters either
amp.type  of O1 to O3: f16 or bf16
amp.loss_scale  of O1 to O3: dynamic (2^16 at first, halved after an overflow, doubled after 2000 good steps), or a fixed factor
amp.keep_batchnorm_fp32  of O2 and O3: scales and shifts of BatchNorm and LayerNorm stay float32, as statistics do in any case
collective.backend  cpu or ascend
collective.transport  auto, shm, tcp or inproc (all ranks in one process)
collective.algorithm  auto, naive, ring, tree, double-tree, halving-doubling, doubling, bruck, direct, pairwise, hierarchical, paced (over slow links); in 8 segments tree/8; by size and operation "tree:64KiB,ring" or "allreduce=tree:64KiB,ring;broadcast=tree"
collective.pack  pack floats without loss, an f32 of a gradient in about 27 bits: auto packs what calls send between hosts on links under 400 MB/s, where all processors are fast at it (AVX2 and BMI2) and there is one socket per peer; true packs all that calls send over tcp
collective.timeout  a call that takes longer has failed
collective.stall  a call that waits longer is reported: who is missing, and what it does instead; 0s reports none
collective.heartbeat  interval at which ranks show that they live; one that misses three is reported
collective.retry  attempts in a row to build up a broken tcp connection again, from where it broke; 0: a broken connection is a lost rank
collective.sockets_per_peer  TCP connections between two ranks, 1 to 16
collective.segment  largest piece of a message that tcp writes at once, up to 64MiB; auto is 1MiB
collective.buffer_mb  buffers of each tcp socket, in 2^20 bytes; auto leaves them to the kernel, which is faster as a rule
collective.interface  network interface to use, by name: "eth" (begins so), "=eth0" (exactly), "^docker" (not), "^=lo"; several with commas
collective.ports  ports to listen on, such as 20000..20100; every rank of a host takes one
collective.rank_table  file that places the ranks on servers and devices, as HCCL has it; "train diag -rank-table FILE" checks and repairs one
collective.device_halves  of ascend: the devices add 16-bit floats themselves, those of fusion.wire f16 and bf16 too, and round at every addition; else they are added in float32 on the host
collective.checksum  verify every tcp message with CRC32C
collective.tls.name  off; auto: TLS 1.3 between the holders of the job's token; files: and of a certificate
collective.tls.cert  of files: PEM file with this rank's certificate
collective.tls.key  of files: PEM file with its key
collective.tls.ca  of files: PEM file with the authority that all certificates come from
collective.faults  faults to inject, for tests of a job, such as ["rank=1 kind=delay after=10 count=3 for=2s"]; kind is delay, reorder, drop, corrupt, freeze or kill; further keys are peer, chance and seed
compute.threads  threads per rank; auto is cores / local ranks
compute.kernels  auto, naive, portable, avx2, avx512, amx, neon; ascend, in a binary built with -tags ascend: products, sums and conversions on the device, all else as with auto; openblas and onednn, to compare, in a binary built with -tags extblas: from GRADFUSION_OPENBLAS, GRADFUSION_ONEDNN (files), or found by the loader
compute.conv  3 x 3 convolutions of stride 1: direct, winograd2, winograd4 (tiles of 2 x 2 or 4 x 4 outputs), or auto: by the shape
launch.nproc  worker processes on this host, or a range such as 2..8 for an elastic job
launch.rendezvous  address at which the ranks meet; auto takes a free port here
launch.hosts  hosts to start processes on
launch.placement  which ranks share a host, beside those that share layers: auto and data-inside: those with the same parameters; pipeline-inside: the stages of a column; rank-order: as they are numbered
launch.max_restarts  times that a failed job is started again
launch.bind_cores  bind each process to processors of its own; auto does in a pipeline, where ranks wait for each other in turns, if they compute on one thread each, this program starts them and there are enough processors, and in train bench likewise
checkpoint.dir  directory of the checkpoints; "" saves none
checkpoint.every  "20 steps", "1 epoch", "10m" or never; after the last step in any case
checkpoint.keep  newest checkpoints to keep
checkpoint.keep_best  keep the one with the best evaluation as well
checkpoint.async  write while training goes on
checkpoint.fallback  resume from an older checkpoint when the newest is damaged
observe.run_dir  directory of the run's files; auto makes one, "" leaves nothing
observe.log_every  steps between log lines
observe.trace  write trace.json for Perfetto and chrome://tracing
observe.tensorboard  write TensorBoard event files
observe.metrics  address to serve Prometheus metrics at
observe.dashboard  address to serve a live page at
observe.all_ranks  log on all ranks, not on rank 0 alone
`
