// Package tensorboard writes scalars as TensorBoard event files, which
// TensorBoard and other readers of that format show while the run goes on.
//
// The caller opens a Writer on the run's folder, gives it scalars in the order
// of their steps, and closes it. Each Open begins a file of its own; TensorBoard
// reads all files of a folder as one run. When a run is resumed in its old
// folder, the new file tells readers to forget what older files hold from its
// first step on.
//
// The package leaves out everything but scalars (images, histograms, graphs)
// and reads nothing back. The formats are TensorFlow's: TFRecord framing
// (tensorflow/core/lib/io/record_writer.h) around protocol buffers
// (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto),
// few enough to be encoded by hand.
package tensorboard
