package config

import "strings"

// Common returns "key: value" for every setting that all ranks of a job must
// have alike, in the order of the YAML. What is left out says where a rank finds,
// keeps and shows things and how it computes and communicates.
func (c *Config) Common() []string {
	var out []string
	for _, key := range Keys() {
		if !ownToRank(key) && c.belongsTo(key) == "" {
			out = append(out, key+": "+leafText(c.lookup(key)))
		}
	}
	return out
}

// ownToRank reports whether ranks of one job may differ in a setting. Kernels
// and algorithms may not, but are compared where they are used.
func ownToRank(key string) bool {
	section, _, _ := strings.Cut(key, ".")
	switch section {
	case "collective", "compute", "checkpoint":
		return true
	case "launch":
		return key != "launch.placement" // by which each finds all ranks' places
	case "observe":
		return key != "observe.trace"
	}
	return key == "data.path" || key == "data.workers"
}
