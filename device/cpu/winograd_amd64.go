package cpu

func winogradsAVX2() winogradKernels {
	return winogradKernels{
		winograd2: &winogradForm{
			outputs: 2, points: 4,
			dataDown: winograd2DataDownAVX2, dataAcross: winograd2DataAcrossAVX2,
			gradientDown: winograd2GradientDownAVX2, gradientAcross: winograd2GradientAcrossAVX2,
			outputDown: winograd2OutputDownAVX2, outputAcross: winograd2OutputAcrossAVX2,
			inputDown: winograd2InputDownAVX2, inputAcross: winograd2InputAcrossAVX2,
			weights: winograd2WeightsAVX2, weightsGradient: winograd2WeightsGradientAVX2,
		},
		winograd4: &winogradForm{
			outputs: 4, points: 6,
			dataDown: winograd4DataDownAVX2, dataAcross: winograd4DataAcrossAVX2,
			gradientDown: winograd4GradientDownAVX2, gradientAcross: winograd4GradientAcrossAVX2,
			outputDown: winograd4OutputDownAVX2, outputAcross: winograd4OutputAcrossAVX2,
			inputDown: winograd4InputDownAVX2, inputAcross: winograd4InputAcrossAVX2,
			weights: winograd4WeightsAVX2, weightsGradient: winograd4WeightsGradientAVX2,
		},
	}
}

func winogradsAVX512() winogradKernels {
	return winogradKernels{
		winograd2: &winogradForm{
			outputs: 2, points: 4,
			dataDown: winograd2DataDownAVX512, dataAcross: winograd2DataAcrossAVX512,
			gradientDown: winograd2GradientDownAVX512, gradientAcross: winograd2GradientAcrossAVX512,
			outputDown: winograd2OutputDownAVX512, outputAcross: winograd2OutputAcrossAVX512,
			inputDown: winograd2InputDownAVX512, inputAcross: winograd2InputAcrossAVX512,
			weights: winograd2WeightsAVX512, weightsGradient: winograd2WeightsGradientAVX512,
		},
		winograd4: &winogradForm{
			outputs: 4, points: 6,
			dataDown: winograd4DataDownAVX512, dataAcross: winograd4DataAcrossAVX512,
			gradientDown: winograd4GradientDownAVX512, gradientAcross: winograd4GradientAcrossAVX512,
			outputDown: winograd4OutputDownAVX512, outputAcross: winograd4OutputAcrossAVX512,
			inputDown: winograd4InputDownAVX512, inputAcross: winograd4InputAcrossAVX512,
			weights: winograd4WeightsAVX512, weightsGradient: winograd4WeightsGradientAVX512,
		},
	}
}
