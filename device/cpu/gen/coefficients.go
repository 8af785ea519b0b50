package main

// The coefficients are fits of this project: weighted least squares at 120
// Chebyshev nodes, with weights that grow where the relative error is largest
// until it is the same everywhere.

// expTail: exp(r) is 1 + r + r^2 expTail(r) for |r| up to ln(2)/2.
var expTail = []float64{0.499999930438, 0.166665147268, 0.0416684581786, 0.00836942472182, 0.00138130784092}

// tanhLimit is where tanh is 1 in float32.
const tanhLimit = 9

// tanh(x)/x over x^2 up to 81, to 2e-8.
var (
	tanhAbove = []float64{0.999999979054, 0.133809564542, 0.0034955073801, 2.06078173702e-5, 1.33530342992e-8}
	tanhBelow = []float64{1, 0.467142719959, 0.0258766712074, 0.000328550546044, 7.77586559151e-7}
)

// geluLimit is where the normal distribution's share beyond is below 1e-9.
const geluLimit = 6

// (share below x - 1/2) / x of the normal distribution over x^2 up to 36, to
// 3e-9.
var (
	geluAbove = []float64{0.398942281351, 0.0327411056753, 0.00480834206838, 0.000170619798421, 8.46771564283e-6, 5.28164348741e-8, -7.56690477071e-11}
	geluBelow = []float64{1, 0.248736493962, 0.0285086602896, 0.00193708981571, 8.21667158183e-5, 2.00055250279e-6}
)
