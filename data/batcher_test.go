package data

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// countingImages has a different pixel nearly everywhere.
func countingImages(n, channels, height, width int) *Images {
	s := &Images{Channels: channels, Height: height, Width: width, Classes: 3,
		Pixels: make([]byte, n*channels*height*width), Labels: make([]int32, n)}
	for i := range s.Pixels {
		s.Pixels[i] = byte(i*7 + i/256)
	}
	for i := range s.Labels {
		s.Labels[i] = int32(i % 3)
	}
	return s
}

// naive draws one sample pixel by pixel: pad, crop, mirror, normalise.
func naive(s *Images, n Normalization, p placement, index int) []float32 {
	var out []float32
	for c := range s.Channels {
		for r := range s.Height {
			for col := range s.Width {
				if p.flip {
					col = s.Width - 1 - col
				}
				y, x := r+p.dy, col+p.dx
				var v byte
				if y >= 0 && y < s.Height && x >= 0 && x < s.Width {
					v = s.Sample(index)[(c*s.Height+y)*s.Width+x]
				}
				out = append(out, float32((float64(v)/255-n.Mean[c])/n.Std[c]))
			}
		}
	}
	return out
}

func TestFillEqualsNaiveTwin(t *testing.T) {
	for _, shape := range [][3]int{{1, 5, 7}, {3, 6, 5}, {2, 8, 8}} {
		set := countingImages(11, shape[0], shape[1], shape[2])
		norm := set.Normalization()
		for _, text := range []string{"none", "flip", "crop-flip", "crop-flip:1"} {
			augment, err := ParseAugment(text)
			require.NoError(t, err)
			b, err := NewBatcher(set, norm, augment, 42)
			require.NoError(t, err)
			indices := []int{10, 0, 3, 3, 7}
			for epoch := range 20 {
				x, y := make([]float32, 5*set.SampleSize()), make([]int32, 5)
				require.NoError(t, b.Fill(Samples{X: x, Y: y}, indices, epoch))
				var want []float32
				for _, i := range indices {
					want = append(want, naive(set, norm, augment.place(42, epoch, i), i)...)
				}
				require.Equal(t, want, x, "%s epoch %d", text, epoch)
				require.Equal(t, []int32{1, 0, 0, 0, 1}, y)
			}
		}
	}
}

func TestAugmentationUsesItsWholeRange(t *testing.T) {
	a := Augment{Flip: true, Pad: 2}
	places := map[placement]int{}
	for i := range 5000 {
		places[a.place(1, 0, i)]++
	}
	require.Len(t, places, 2*5*5)
	for p, k := range places {
		require.InDelta(t, 100, k, 45, "%+v", p) // 4.5 deviations of a fixed seed
	}
	require.Equal(t, placement{}, Augment{}.place(1, 2, 3))
	for i := range 100 {
		require.Equal(t, a.place(7, 1, i).flip, Augment{Flip: true}.place(7, 1, i).flip)
	}
}

func TestNormalizationIsThatOfTheValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	set := countingImages(40, 2, 3, 5)
	for i := range set.Pixels {
		set.Pixels[i] = byte(random.IntN(200))
	}
	n := set.Normalization()
	for c := range 2 {
		var values []float64
		for i := range set.Len() {
			for _, p := range set.Sample(i)[c*15 : (c+1)*15] {
				values = append(values, float64(p)/255)
			}
		}
		var mean, square float64
		for _, v := range values {
			mean += v / float64(len(values))
		}
		for _, v := range values {
			square += (v - mean) * (v - mean) / float64(len(values))
		}
		// Both sides round in another order, a few units in the last place.
		require.InEpsilon(t, mean, n.Mean[c], 1e-12)
		require.InEpsilon(t, math.Sqrt(square), n.Std[c], 1e-12)
	}
	flat := &Images{Channels: 1, Height: 1, Width: 1, Classes: 1, Pixels: []byte{51, 51}, Labels: []int32{0, 0}}
	require.Equal(t, Normalization{Mean: []float64{51.0 / 255}, Std: []float64{1}}, flat.Normalization())
}

func TestFillDoesNotAllocate(t *testing.T) {
	set := countingImages(20, 3, 8, 8)
	b, err := NewBatcher(set, set.Normalization(), Augment{Flip: true, Pad: 2}, 1)
	require.NoError(t, err)
	x, y := make([]float32, 4*set.SampleSize()), make([]int32, 4)
	require.Zero(t, testing.AllocsPerRun(20, func() { _ = b.Fill(Samples{X: x, Y: y}, []int{1, 2, 3, 4}, 1) }))
}

func TestBatcherErrors(t *testing.T) {
	set := countingImages(4, 1, 4, 4)
	norm := set.Normalization()
	_, err := NewBatcher(set, norm, Augment{Pad: 4}, 0)
	require.ErrorContains(t, err, "4 pixels of padding")
	_, err = NewBatcher(set, Normalization{}, Augment{}, 0)
	require.ErrorContains(t, err, "normalisation of 0 means")
	_, err = NewBatcher(&Images{}, norm, Augment{}, 0)
	require.Error(t, err)
	wrong := *set
	wrong.Labels = []int32{0, 1, 2, 3}
	_, err = NewBatcher(&wrong, norm, Augment{}, 0)
	require.ErrorContains(t, err, "image 3 has label 3, expected 0 to 2")

	b, err := NewBatcher(set, norm, Augment{}, 0)
	require.NoError(t, err)
	require.ErrorContains(t, b.Fill(Samples{X: make([]float32, 16), Y: make([]int32, 1)}, []int{4}, 0), "sample 4 of a set of 4")
	require.ErrorContains(t, b.Fill(Samples{X: make([]float32, 16), Y: make([]int32, 1)}, []int{-1}, 0), "sample -1")
	require.ErrorContains(t, b.Fill(Samples{X: make([]float32, 15), Y: make([]int32, 1)}, []int{0}, 0), "do not fit")
	require.ErrorContains(t, b.Fill(Samples{X: make([]float32, 16)}, []int{0}, 0), "do not fit")
}

func TestParseAugment(t *testing.T) {
	for text, want := range map[string]Augment{"": {}, "none": {}, "flip": {Flip: true},
		"crop-flip": {Flip: true, Pad: 4}, "crop-flip:2": {Flip: true, Pad: 2}} {
		got, err := ParseAugment(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, text := range []string{"crop", "crop-flip:", "crop-flip:0", "crop-flip:x", "none:1", "flip:2", "crop-flip:99999"} {
		_, err := ParseAugment(text)
		require.ErrorContains(t, err, "data.augment", text)
	}
}

func BenchmarkFill(b *testing.B) {
	for _, shape := range [][3]int{{1, 28, 28}, {3, 32, 32}, {3, 224, 224}} {
		for _, text := range []string{"none", "flip", "crop-flip"} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", shape[0], shape[1], shape[2], text), func(b *testing.B) {
				set := countingImages(256, shape[0], shape[1], shape[2])
				augment, _ := ParseAugment(text)
				filler, err := NewBatcher(set, set.Normalization(), augment, 1)
				require.NoError(b, err)
				indices := make([]int, 64)
				for i := range indices {
					indices[i] = i * 4
				}
				x, y := make([]float32, 64*set.SampleSize()), make([]int32, 64)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					_ = filler.Fill(Samples{X: x, Y: y}, indices, n)
					n++
				}
				b.ReportMetric(float64(n*64)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
