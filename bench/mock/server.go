package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	firstBufferBytes = 8 << 10
	maxRequestBytes  = 64 << 20
)

// server answers HTTP/1.1 with keep-alive, by hand: net/http would cost five times the processor.
type server struct {
	reply     []byte
	latencies atomic.Pointer[latencyTable]
	stats     stats
}

func newServer(replyBytes int) *server {
	return &server{reply: makeReply(replyBytes), stats: newStats()}
}

func (s *server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		check(err)
		go s.talk(conn)
	}
}

// talk answers one connection's requests, one after another, until it closes.
func (s *server) talk(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, firstBufferBytes)
	filled := 0
	for {
		size, body, err := wholeRequest(buffer[:filled])
		if err != nil {
			return
		}
		if size == 0 {
			if filled == len(buffer) {
				buffer = append(buffer, make([]byte, len(buffer))...)
			}
			n, err := conn.Read(buffer[filled:])
			if err != nil {
				return
			}
			filled += n
			continue
		}
		if !s.answer(conn, body) {
			return
		}
		filled = copy(buffer, buffer[size:filled])
	}
}

func (s *server) answer(conn net.Conn, body []byte) bool {
	model := modelOf(body)
	counts := s.stats.started(model)
	arrived := time.Now()
	if latency := s.latencies.Load().of(model); latency > 0 {
		time.Sleep(latency)
	}
	_, err := conn.Write(s.reply)
	s.stats.ended(counts, time.Since(arrived), err == nil)
	return err == nil
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\ncontent-length:")
	modelMember   = []byte(`"model":"`)
	okStatus      = []byte("HTTP/1.1 200")
	chunked       = []byte("\r\ntransfer-encoding: chunked")
	lastChunk     = []byte("\r\n0\r\n\r\n")
	errRequest    = errors.New("not a request that this server knows")
)

// wholeRequest gives a request's size and body once all of it is there; size 0 means not yet.
func wholeRequest(data []byte) (size int, body []byte, err error) {
	end := bytes.Index(data, headEnd)
	if end < 0 {
		if len(data) > maxRequestBytes {
			return 0, nil, errRequest
		}
		return 0, nil, nil
	}
	length := 0
	if at := indexFold(data[:end], contentLength); at >= 0 {
		value := data[at+len(contentLength) : end]
		if line := bytes.IndexByte(value, '\r'); line >= 0 {
			value = value[:line]
		}
		length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		if err != nil || length < 0 || length > maxRequestBytes {
			return 0, nil, errRequest
		}
	}
	start := end + len(headEnd)
	if len(data) < start+length {
		return 0, nil, nil
	}
	return start + length, data[start : start+length], nil
}

// indexFold finds a header name whatever its case; heads are a few hundred bytes.
func indexFold(head, name []byte) int {
	for at := 0; ; at++ {
		next := bytes.IndexByte(head[at:], '\r')
		if next < 0 || at+next+len(name) > len(head) {
			return -1
		}
		at += next
		if bytes.EqualFold(head[at:at+len(name)], name) {
			return at
		}
	}
}

func modelOf(body []byte) []byte {
	at := bytes.Index(body, modelMember)
	if at < 0 {
		return nil
	}
	rest := body[at+len(modelMember):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil
	}
	return rest[:end]
}

// makeReply makes head and body of the one answer that everybody gets, `size` bytes of body or more.
func makeReply(size int) []byte {
	const shape = `{"id":"chatcmpl-mock","object":"chat.completion","created":1700000000,"model":"mock",` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":57,"completion_tokens":190,"total_tokens":247}}`
	words := max(0, size-len(shape)+len("%s"))
	body := fmt.Sprintf(shape, strings.Repeat("answer ", words/7)+strings.Repeat("x", words%7))
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: mock\r\n" +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return []byte(head + body)
}

// readReply reads one successful answer from a connection of a load, of a known length or chunked.
func readReply(conn io.Reader, buffer []byte) error {
	filled := 0
	for {
		n, err := conn.Read(buffer[filled:])
		if err != nil {
			return err
		}
		filled += n
		if filled >= len(okStatus) && !bytes.HasPrefix(buffer, okStatus) {
			return fmt.Errorf("expected status 200, got %q", buffer[:min(filled, 300)])
		}
		whole, err := isWhole(buffer[:filled])
		if err != nil || whole {
			return err
		}
		if filled == len(buffer) {
			return errRequest
		}
	}
}

// isWhole says whether the bytes are a complete answer.
func isWhole(data []byte) (bool, error) {
	end := bytes.Index(data, headEnd)
	if end >= 0 && indexFold(data[:end], chunked) >= 0 {
		return bytes.HasSuffix(data, lastChunk), nil
	}
	size, _, err := wholeRequest(data)
	return size > 0, err
}
