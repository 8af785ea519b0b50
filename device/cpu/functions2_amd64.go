package cpu

func functionsAVX2() functions {
	a := functionAssembly{
		lanes: 8,

		tanh:    tanhAVX2,
		sigmoid: sigmoidAVX2,
		gated:   [...]func(y, x *float32, n int){geluAVX2, geluTanhAVX2, siluAVX2},
		gradient: [...]func(dx, dy, saved *float32, n int){
			geluBackwardAVX2, geluTanhBackwardAVX2, siluBackwardAVX2, tanhBackwardAVX2, sigmoidBackwardAVX2,
		},
		gradientAdd: [...]func(dx, dy, saved *float32, n int){
			geluBackwardAddAVX2, geluTanhBackwardAddAVX2, siluBackwardAddAVX2, tanhBackwardAddAVX2, sigmoidBackwardAddAVX2,
		},
		dropout:         dropoutAVX2,
		shifted:         shiftedAVX2,
		addRows:         addRowsAVX2,
		sum:             sumAVX2,
		largest:         largestAVX2,
		exponentials:    exponentialsAVX2,
		dot:             dotAVX2,
		softmaxBackward: softmaxBackwardAVX2,

		about:              aboutAVX2,
		normalise:          normaliseAVX2,
		backwardSums:       layerNormSumsAVX2,
		backwardOutputs:    layerNormOutputsAVX2,
		backwardOutputsAdd: layerNormOutputsAddAVX2,
	}
	return a.functions()
}
