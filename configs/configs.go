// Package configs holds the configurations that come with GradFusion, as files
// to read and as copies in the binary, so that a binary alone can train.
package configs

import "embed"

// FS holds the YAML files of this folder. It is only read.
//
//go:embed *.yaml
var FS embed.FS
