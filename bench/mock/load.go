package main

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// load sends the same request over and over on each connection and prints the rate: what a client
// that does nothing else gets out of the server on this machine.
func load(args []string) {
	flags := flag.NewFlagSet("load", flag.ExitOnError)
	address := flags.String("address", "", "host and port of the server")
	connections := flags.Int("connections", 100, "requests in flight")
	seconds := flags.Float64("seconds", 2, "how long")
	bodyBytes := flags.Int("body-bytes", 279, "length of each request's body")
	headers := flags.String("headers", "", "further header lines, separated by |")
	check(flags.Parse(args))

	conns := make([]net.Conn, *connections)
	for i := range conns {
		conn, err := net.Dial("tcp", *address)
		check(err)
		conns[i] = conn
	}
	request := makeRequest(*bodyBytes, *headers)
	var answered atomic.Int64
	var group sync.WaitGroup
	started := time.Now()
	until := started.Add(time.Duration(*seconds * float64(time.Second)))
	for _, conn := range conns {
		group.Add(1)
		go func() {
			defer group.Done()
			buffer := make([]byte, 64<<10)
			for time.Now().Before(until) {
				_, err := conn.Write(request)
				check(err)
				check(readReply(conn, buffer))
				answered.Add(1)
			}
		}()
	}
	group.Wait()
	took := time.Since(started).Seconds()
	print(map[string]float64{"requests": float64(answered.Load()), "perSec": float64(answered.Load()) / took})
}

func makeRequest(bodyBytes int, headers string) []byte {
	const prefix, suffix = `{"model":"load","text":"`, `"}`
	body := prefix + strings.Repeat("x", max(0, bodyBytes-len(prefix)-len(suffix))) + suffix
	const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n"
	lines := ""
	for _, line := range strings.FieldsFunc(headers, func(r rune) bool { return r == '|' }) {
		lines += line + "\r\n"
	}
	return []byte(fmt.Sprintf(head, len(body), lines) + body)
}
