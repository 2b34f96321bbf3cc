package scripted

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Conn is the connection an answer is written to.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// Answer plays the answer to one request. Nil leaves the connection open for the
// next one; an error ends it.
type Answer func(c *Conn) error

// Raw writes a text, headers and all.
func Raw(text string) Answer {
	return func(c *Conn) error {
		_, err := io.WriteString(c, text)
		return err
	}
}

// Seq plays answers one after another, as parts of one.
func Seq(answers ...Answer) Answer {
	return func(c *Conn) error {
		for _, a := range answers {
			if err := a(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// Close closes the connection.
func Close(*Conn) error { return errEnd }

// Reset breaks the connection. What the other side has not yet read is lost.
func Reset(c *Conn) error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	return errEnd
}

// Hang does nothing until the client closes the connection.
func Hang(c *Conn) error {
	if _, err := c.r.ReadByte(); err != nil {
		return err
	}
	return errEnd
}

// Until does nothing until the channel is closed.
func Until(ch <-chan struct{}) Answer {
	return func(*Conn) error {
		<-ch
		return nil
	}
}

// Then calls f when the answers before it are written.
func Then(f func()) Answer {
	return func(*Conn) error {
		f()
		return nil
	}
}

// Status is a whole answer that is no stream. Headers are "Name: value".
func Status(code int, kind, body string, headers ...string) Answer {
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
	if kind != "" {
		fmt.Fprintf(&head, "Content-Type: %s\r\n", kind)
	}
	for _, h := range headers {
		head.WriteString(h + "\r\n")
	}
	fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n", len(body))
	return Raw(head.String() + body)
}

// Head begins an event stream.
func Head(headers ...string) Answer {
	text := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
	for _, h := range headers {
		text += h + "\r\n"
	}
	return Raw(text + "\r\n")
}

// Bytes is a piece of a stream's body; no text is no piece, since an empty one
// would end the stream.
func Bytes(text string) Answer {
	if text == "" {
		return Seq()
	}
	return Raw(fmt.Sprintf("%x\r\n%s\r\n", len(text), text))
}

// End ends a stream cleanly.
func End() Answer { return Raw("0\r\n\r\n") }

// Events are events with these data, each in a piece of its own.
func Events(data ...string) Answer {
	var answers []Answer
	for _, d := range data {
		answers = append(answers, Bytes("data: "+strings.ReplaceAll(d, "\n", "\ndata: ")+"\n\n"))
	}
	return Seq(answers...)
}

// Stream is a whole event stream of these data.
func Stream(data ...string) Answer { return Seq(Head(), Events(data...), End()) }

// Done is the data of the event that ends a chat completion.
const Done = "[DONE]"

// Text is the whole answer of a model that says these pieces.
func Text(pieces ...string) Answer {
	var data []string
	for _, p := range pieces {
		data = append(data, Content(p))
	}
	return Stream(append(data, Finish("stop"), Usage(10, 5), Done)...)
}

// Call is a tool call that a model makes. Arguments are a text, right or wrong.
type Call struct{ ID, Name, Arguments string }

// Calls is the whole answer of a model that makes these calls.
func Calls(calls ...Call) Answer {
	var data []string
	for i, c := range calls {
		data = append(data, Tool(i, c.ID, c.Name, c.Arguments))
	}
	return Stream(append(data, Finish("tool_calls"), Usage(10, 5), Done)...)
}

// Delta is a chunk whose delta has these members, as JSON without the braces.
func Delta(members string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}`
}

// Content is a chunk of text.
func Content(text string) string { return Delta(`"content":` + quote(text)) }

// Tool is the first chunk of a call, with all or some of its arguments; id and
// name are left out if they are "".
func Tool(index int, id, name, arguments string) string {
	text := fmt.Sprintf(`"tool_calls":[{"index":%d,`, index)
	if id != "" {
		text += `"id":` + quote(id) + `,"type":"function",`
	}
	text += `"function":{`
	if name != "" {
		text += `"name":` + quote(name) + `,`
	}
	return Delta(text + `"arguments":` + quote(arguments) + `}}]`)
}

// Finish is the chunk with the reason why the answer ends.
func Finish(reason string) string {
	return `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":` + quote(reason) + `}]}`
}

// Usage is the chunk with the token counts.
func Usage(prompt, completion int) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		prompt, completion, prompt+completion)
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}
