// Command mock is the model server that the benchmarks measure against, and the raw load that shows
// how fast it is. It answers every POST with the same chat completion after a fixed time, per model
// where asked, and counts what it got.
//
//	mock serve --latency 50ms --models slow=1s --reply-bytes 900
//	mock load --address 127.0.0.1:1234 --connections 100 --seconds 2 --body-bytes 279
//	mock pace --address 127.0.0.1:1234 --rate 500 --seconds 5
//	mock stream --interval 50ms
//	mock listen --address 127.0.0.1:1234 --streams 500 --seconds 5
//	mock proxy --to http://127.0.0.1:1234
//
// `stream` is a second server, whose answers are event streams; `listen` reads many of them. `proxy` is the
// reverse proxy of Go's standard library. Each prints one line of JSON. Servers end when their standard input
// does, so that they never outlive the program that started them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail("expected a command: serve, load, pace, stream, listen or proxy")
	}
	switch os.Args[1] {
	case "serve":
		serve(os.Args[2:])
	case "load":
		load(os.Args[2:])
	case "pace":
		pace(os.Args[2:])
	case "stream":
		stream(os.Args[2:])
	case "listen":
		listen(os.Args[2:])
	case "proxy":
		proxy(os.Args[2:])
	default:
		fail("unknown command " + os.Args[1])
	}
}

func serve(args []string) {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	port := flags.Int("port", 0, "loopback port for requests; 0 takes a free one")
	latency := flags.Duration("latency", 0, "time to each answer")
	models := flags.String("models", "", "latencies of single models: a=50ms,b=1s")
	replyBytes := flags.Int("reply-bytes", 900, "length of an answer's body")
	check(flags.Parse(args))

	server := newServer(*replyBytes)
	table, err := parseLatencies(*latency, *models)
	check(err)
	server.latencies.Store(table)
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	check(err)
	control, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() { check(http.Serve(control, server.control())) }()
	go server.accept(listener)
	print(map[string]int{"port": portOf(listener), "control": portOf(control)})
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// control is the side door: statistics, a fresh start of them, other latencies.
func (s *server) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		check(json.NewEncoder(w).Encode(s.stats.snapshot()))
	})
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		latency, err := time.ParseDuration(query.Get("latency"))
		if err == nil {
			var table *latencyTable
			table, err = parseLatencies(latency, query.Get("models"))
			if err == nil {
				s.latencies.Store(table)
				s.stats.reset()
				return
			}
		}
		http.Error(w, err.Error(), http.StatusBadRequest)
	})
	return mux
}

// latencyTable says how long each model takes; it is replaced as a whole.
type latencyTable struct {
	other  time.Duration
	models map[string]time.Duration
}

func (t *latencyTable) of(model []byte) time.Duration {
	if latency, ok := t.models[string(model)]; ok {
		return latency
	}
	return t.other
}

func parseLatencies(other time.Duration, models string) (*latencyTable, error) {
	table := &latencyTable{other: other, models: map[string]time.Duration{}}
	for _, entry := range strings.FieldsFunc(models, func(r rune) bool { return r == ',' }) {
		name, text, found := strings.Cut(entry, "=")
		if !found {
			return nil, fmt.Errorf("expected model=duration, got %q", entry)
		}
		latency, err := time.ParseDuration(text)
		if err != nil {
			return nil, err
		}
		table.models[name] = latency
	}
	return table, nil
}

func portOf(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }

func print(value any) { check(json.NewEncoder(os.Stdout).Encode(value)) }

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, "mock: "+message)
	os.Exit(1)
}
