package data

import "syscall"

// advise asks for huge pages; a kernel without them changes nothing.
func advise(b []byte) { _ = syscall.Madvise(b, syscall.MADV_HUGEPAGE) }
