// Package ranktable reads rank tables, the files that tell HCCL which rank runs
// on which device of which server: versions 1.0 and 1.2, and the older template
// without a version. It names each fault with its line and field, repairs what
// can be repaired, and judges how the ranks are placed. It reads the file only;
// whether the devices exist is for others to ask.
//
// The format is the one of the HCCL user guide ("rank table configuration").
package ranktable
