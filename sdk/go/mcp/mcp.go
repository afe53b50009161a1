// Package qwenmcp makes servers of the official MCP SDK tools of a qwen agent, without another process.
//
//	server := mcp.NewServer(&mcp.Implementation{Name: "calc"}, nil)
//	mcp.AddTool(server, &mcp.Tool{Name: "add"}, add)
//	m, err := qwen.Open(ctx, qwen.Options{Tools: []qwen.ToolServer{qwenmcp.NewServer("calc", server)}})
package qwenmcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	qwen "github.com/qwen-agent/qwen/sdk/go"
)

// NewServer makes a server a tool server. Each session of the agent is a session of the server. The agent offers the
// server nothing: its own requests, such as sampling, are refused.
func NewServer(name string, server *mcp.Server) qwen.ToolServer {
	return qwen.NewMCPServer(name, func() (qwen.MCPConnection, error) {
		c := &connection{incoming: make(chan jsonrpc.Message), waiting: map[jsonrpc.ID]chan jsonrpc.Message{}, closed: make(chan struct{})}
		// The session lives until Close; the context of a single call must not end it.
		session, err := server.Connect(context.Background(), c, nil)
		if err != nil {
			return nil, err
		}
		c.session = session
		return c, nil
	})
}

// connection carries the messages of one session. It is the server's transport and its connection.
type connection struct {
	session  *mcp.ServerSession
	incoming chan jsonrpc.Message
	closed   chan struct{}
	closing  sync.Once

	mu      sync.Mutex
	waiting map[jsonrpc.ID]chan jsonrpc.Message
}

// Connect implements [mcp.Transport].
func (c *connection) Connect(context.Context) (mcp.Connection, error) { return serverSide{c}, nil }

// Handle implements [qwen.MCPConnection].
func (c *connection) Handle(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	message, err := jsonrpc.DecodeMessage(raw)
	if err != nil {
		return nil, err
	}
	request, isRequest := message.(*jsonrpc.Request)
	if !isRequest {
		return nil, fmt.Errorf("qwenmcp: a %T is not a request", message)
	}
	if !request.IsCall() {
		return nil, c.deliver(ctx, request)
	}
	answered := make(chan jsonrpc.Message, 1)
	c.mu.Lock()
	c.waiting[request.ID] = answered
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, request.ID)
	}()
	if err := c.deliver(ctx, request); err != nil {
		return nil, err
	}
	select {
	case answer := <-answered:
		return jsonrpc.EncodeMessage(answer)
	case <-ctx.Done():
		c.cancel(request.ID)
		return nil, context.Cause(ctx)
	case <-c.closed:
		return nil, qwen.ErrClosed
	}
}

// cancel ends the context of a call whose answer is no longer needed.
func (c *connection) cancel(id jsonrpc.ID) {
	params, err := json.Marshal(map[string]any{"requestId": id.Raw(), "reason": "the turn has ended"})
	if err != nil {
		return
	}
	// A server that reads nothing any more has nothing to cancel.
	_ = c.deliver(context.Background(), &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
}

func (c *connection) deliver(ctx context.Context, message jsonrpc.Message) error {
	select {
	case c.incoming <- message:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.closed:
		return qwen.ErrClosed
	}
}

// Close implements [qwen.MCPConnection].
func (c *connection) Close() error {
	c.closing.Do(func() { close(c.closed) })
	if c.session == nil {
		return nil
	}
	return c.session.Close()
}

// serverSide is the connection as the server sees it.
type serverSide struct{ c *connection }

func (s serverSide) SessionID() string { return "" }

func (s serverSide) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-s.c.incoming:
		return message, nil
	case <-s.c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s serverSide) Write(ctx context.Context, message jsonrpc.Message) error {
	switch message := message.(type) {
	case *jsonrpc.Response:
		s.c.mu.Lock()
		answered := s.c.waiting[message.ID]
		delete(s.c.waiting, message.ID)
		s.c.mu.Unlock()
		if answered != nil {
			answered <- message
		}
	case *jsonrpc.Request:
		if message.IsCall() {
			// Not in this goroutine: the server may read and write in one.
			go s.c.refuse(message.ID)
		}
	}
	return nil
}

func (c *connection) refuse(id jsonrpc.ID) {
	const methodNotFound = -32601
	// The server learns from the end of the connection if this cannot be delivered.
	_ = c.deliver(context.Background(), &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: methodNotFound, Message: "the agent offers nothing to servers"}})
}

func (s serverSide) Close() error {
	s.c.closing.Do(func() { close(s.c.closed) })
	return nil
}
