package optim

import (
	"fmt"
	"strings"

	"github.com/gradfusion/gradfusion/internal/spelling"
)

// unknown is the error for a name that is not in known; it proposes the
// nearest one when that is near.
func unknown(what, name string, known []string) error {
	return fmt.Errorf("optim: unknown %s %q%s (known: %s)", what, name, spelling.DidYouMean(name, known), strings.Join(known, " "))
}
