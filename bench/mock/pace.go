package main

import (
	"flag"
	"net"
	"slices"
	"sync"
	"time"
)

// pace sends requests at a fixed rate, whether or not earlier ones are answered, and prints how long answers
// take. The time of a request counts from the moment it is written.
func pace(args []string) {
	flags := flag.NewFlagSet("pace", flag.ExitOnError)
	address := flags.String("address", "", "host and port of the server")
	rate := flags.Float64("rate", 500, "requests per second")
	seconds := flags.Float64("seconds", 5, "how long, after a first second that does not count")
	bodyBytes := flags.Int("body-bytes", 279, "length of each request's body")
	headers := flags.String("headers", "", "further header lines, separated by |")
	check(flags.Parse(args))

	request := makeRequest(*bodyBytes, *headers)
	idle := make(chan net.Conn, 4096)
	var mutex sync.Mutex
	var group sync.WaitGroup
	var took []time.Duration
	started := time.Now()
	for i := 0; float64(i) < *rate*(*seconds+1); i++ {
		at := started.Add(time.Duration(float64(i) / *rate * float64(time.Second)))
		time.Sleep(time.Until(at))
		group.Add(1)
		go func() {
			defer group.Done()
			conn := connection(idle, *address)
			sent := time.Now()
			_, err := conn.Write(request)
			check(err)
			check(readReply(conn, make([]byte, 16<<10)))
			elapsed := time.Since(sent)
			idle <- conn
			if sent.Sub(started) < time.Second {
				return
			}
			mutex.Lock()
			took = append(took, elapsed)
			mutex.Unlock()
		}()
	}
	group.Wait()
	print(quantiles(took))
}

func connection(idle chan net.Conn, address string) net.Conn {
	select {
	case conn := <-idle:
		return conn
	default:
		conn, err := net.Dial("tcp", address)
		check(err)
		return conn
	}
}

// quantiles gives milliseconds.
func quantiles(values []time.Duration) map[string]float64 {
	if len(values) == 0 {
		fail("nothing was measured")
	}
	slices.Sort(values)
	at := func(share float64) float64 {
		return float64(values[int(share*float64(len(values)-1))].Microseconds()) / 1000
	}
	return map[string]float64{"count": float64(len(values)), "p50": at(0.5), "p99": at(0.99), "max": at(1)}
}
