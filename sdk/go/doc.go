// Package qwen runs qwen agents inside Go programs.
//
//	m, err := qwen.Open(ctx, qwen.Options{Model: "demo"})
//	if err != nil { … }
//	defer m.Close()
//	result, err := m.Run(ctx, "What files are here?")
//
// # Design
//
// A [Manager] drives one `qwen hub` process over its standard streams, and a [Session] is one conversation in it. The
// hub starts the workers, restarts them, watches their heartbeats and carries out crash policies; this package contains
// none of that. It sends prompts, turns lines into messages, and answers questions.
//
// A turn is an iterator: [Session.Stream] yields a sealed set of [Message] types, of which [*Result] is the last. An
// iterator has neither a goroutine nor a process, so that leaving the loop, a panic in it and the end of the context all
// free the same things: the turn is interrupted, and what still comes of it is dropped. A context bounds its call and
// never the hub. One goroutine reads the hub's output and never waits for a caller: a session whose messages are not read
// is paused in the hub, which stops its worker and no other.
//
// Functions of the host (permissions, hooks, tools) run in their own goroutines with a context that ends with the
// question. Everything fails closed: an error, a panic, a zero [Decision] and a passed deadline are denials.
//
// A turn that did not complete is an error of [Session.Run], so that a caller who checks errors misses nothing; the
// [*Result] is returned with it. Types of errors are for [errors.As], sentinels for [errors.Is].
//
// The wire types in package wire are generated from the protocol's JSON Schemas. Unknown types and fields never cause an
// error: they arrive as [*Unknown], and every message has its line in Raw.
package qwen
