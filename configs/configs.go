// Package configs holds the configurations that come with GradFusion, as files
// to read and as copies in the binary, so that a binary alone can train.
package configs

import "embed"

// FS holds the YAML files of this folder; those of bench are the jobs whose
// speed is compared with other systems. It is only read.
//
//go:embed *.yaml bench/*.yaml
var FS embed.FS
