package schedule

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pictures in docs are of 4 ranks and 8 micro-batches with F = B = W.
func TestPicturesOfTheDocumentation(t *testing.T) {
	for _, name := range Names() {
		s, err := New(name, 4, 2, 8)
		require.NoError(t, err)
		timing, err := s.Simulate(Costs{})
		require.NoError(t, err)
		var picture bytes.Buffer
		require.NoError(t, s.WriteSVG(&picture, timing))
		path := filepath.Join("..", "..", "docs", "schedule-"+name+".svg")
		if *update {
			require.NoError(t, os.WriteFile(path, picture.Bytes(), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), picture.String(), "go test ./parallel/schedule -update draws it anew")
	}
}

func TestPicturesAreXML(t *testing.T) {
	for _, s := range []Schedule{{}, OneStage(0), OneStage(3), GPipe(3, 0), ZeroBubbleV(3, 5)} {
		timing, err := s.Simulate(Costs{})
		require.NoError(t, err)
		var picture bytes.Buffer
		require.NoError(t, s.WriteSVG(&picture, timing))
		boxes := 0
		for in := xml.NewDecoder(&picture); ; {
			token, err := in.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if e, ok := token.(xml.StartElement); ok && e.Name.Local == "title" {
				boxes++
			}
		}
		actions := 0
		for _, list := range s {
			for _, a := range list {
				if a.Kind <= Weight {
					actions++
				}
			}
		}
		require.Equal(t, actions, boxes)
	}
}
