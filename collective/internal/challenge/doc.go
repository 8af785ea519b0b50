// Package challenge lets the two ends of a connection prove to each other that
// they belong to one job: both know the job's token, and neither sends it.
//
//	dialer   -> purpose (8 bytes), nonce (16)
//	acceptor -> purpose, nonce
//	dialer   -> HMAC-SHA256(token, "dialer"   | purpose | both nonces)
//	acceptor -> verdict (1 byte), HMAC-SHA256(token, "acceptor" | ...)
//
// The acceptor reads 56 bytes of a stranger and nothing else before it believes
// him. The purpose names the protocol and its version. The caller sets the
// deadline of the connection and closes it after an error. An empty token is a
// token that everybody knows. Encryption is not this package's business.
package challenge
