package cpu

func functionsAVX512() functions {
	a := functionAssembly{
		lanes: 16,

		tanh:    tanhAVX512,
		sigmoid: sigmoidAVX512,
		gated:   [...]func(y, x *float32, n int){geluAVX512, geluTanhAVX512, siluAVX512},
		gradient: [...]func(dx, dy, saved *float32, n int){
			geluBackwardAVX512, geluTanhBackwardAVX512, siluBackwardAVX512, tanhBackwardAVX512, sigmoidBackwardAVX512,
		},
		gradientAdd: [...]func(dx, dy, saved *float32, n int){
			geluBackwardAddAVX512, geluTanhBackwardAddAVX512, siluBackwardAddAVX512, tanhBackwardAddAVX512, sigmoidBackwardAddAVX512,
		},
		dropout:         dropoutAVX512,
		shifted:         shiftedAVX512,
		addRows:         addRowsAVX512,
		sum:             sumAVX512,
		largest:         largestAVX512,
		exponentials:    exponentialsAVX512,
		dot:             dotAVX512,
		softmaxBackward: softmaxBackwardAVX512,

		about:              aboutAVX512,
		normalise:          normaliseAVX512,
		backwardSums:       layerNormSumsAVX512,
		backwardOutputs:    layerNormOutputsAVX512,
		backwardOutputsAdd: layerNormOutputsAddAVX512,
	}
	return a.functions()
}
