// Package checkpoint keeps the state of a training run in safetensors files:
// named tensors and a few strings, one file a checkpoint, named after its step
// (step-00000120.safetensors).
//
// Write publishes a file in one go: a reader finds the whole of it or nothing,
// also after a crash. The first entry of the metadata is a SHA-256 over all of
// the file, so that Read, Verify and Latest notice a file that was cut or
// changed. Other safetensors readers open the files as they are. Writer and
// Reader do the same tensor by tensor, for who has no memory for all of them.
//
// What the tensors mean, who gathers them from the ranks and which rank writes
// is the caller's business; a directory has one writer at a time. Tensor bytes
// are little-endian, as on every machine that this module builds for.
package checkpoint
