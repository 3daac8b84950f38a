package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

var eventStart = []byte(`data: {"at":`)

// stream answers every POST with an endless event stream. Each event has the time at which it was written.
func stream(args []string) {
	flags := flag.NewFlagSet("stream", flag.ExitOnError)
	interval := flags.Duration("interval", 50*time.Millisecond, "time between events")
	check(flags.Parse(args))
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("content-type", "text/event-stream")
		if r.Method != http.MethodPost {
			return
		}
		for ticker := time.NewTicker(*interval); ; {
			select {
			case <-r.Context().Done():
				ticker.Stop()
				return
			case <-ticker.C:
			}
			event := fmt.Sprintf("%s%d,\"choices\":[{\"delta\":{\"content\":\"word\"}}]}\n\n", eventStart, time.Now().UnixNano())
			if _, err := io.WriteString(w, event); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
	serveUntilInputEnds(http.HandlerFunc(handler))
}

// serveUntilInputEnds prints the free port on which it serves.
func serveUntilInputEnds(handler http.Handler) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() { check(http.Serve(listener, handler)) }()
	print(map[string]int{"port": portOf(listener)})
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// listen reads many streams at once, and prints how late their events come. The first second does not count.
func listen(args []string) {
	flags := flag.NewFlagSet("listen", flag.ExitOnError)
	address := flags.String("address", "", "host and port of the server")
	streams := flags.Int("streams", 500, "streams at once")
	seconds := flags.Float64("seconds", 5, "how long, after a first second that does not count")
	headers := flags.String("headers", "", "further header lines, separated by |")
	check(flags.Parse(args))

	request := makeRequest(279, *headers)
	var mutex sync.Mutex
	var group sync.WaitGroup
	var late []time.Duration
	spread := 500 * time.Millisecond / time.Duration(*streams)
	from := time.Now().Add(time.Second + 500*time.Millisecond)
	until := from.Add(time.Duration(*seconds * float64(time.Second)))
	for range *streams {
		time.Sleep(spread)
		group.Add(1)
		go func() {
			defer group.Done()
			found := readStream(*address, request, from, until)
			mutex.Lock()
			late = append(late, found...)
			mutex.Unlock()
		}()
	}
	group.Wait()
	print(quantiles(late))
}

func readStream(address string, request []byte, from, until time.Time) []time.Duration {
	conn, err := net.Dial("tcp", address)
	check(err)
	defer conn.Close()
	_, err = conn.Write(request)
	check(err)
	var late []time.Duration
	check(conn.SetReadDeadline(until.Add(10 * time.Second)))
	for reader := bufio.NewReader(conn); ; {
		line, err := reader.ReadSlice('\n')
		check(err)
		now := time.Now()
		if now.After(until) {
			return late
		}
		rest, isEvent := bytes.CutPrefix(line, eventStart)
		if !isEvent || now.Before(from) {
			continue
		}
		nanos, err := strconv.ParseInt(string(rest[:bytes.IndexByte(rest, ',')]), 10, 64)
		check(err)
		late = append(late, now.Sub(time.Unix(0, nanos)))
	}
}
