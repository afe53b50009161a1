// Package wire has the lines of the protocol between a host and qwen, for programs that decode Raw of a message. Fields
// that this version does not contain are ignored when a line is decoded.
package wire
