package main

import (
	"flag"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// proxy is what Go's standard library offers, with enough idle connections for the load and without buffering.
func proxy(args []string) {
	flags := flag.NewFlagSet("proxy", flag.ExitOnError)
	to := flags.String("to", "", "origin of the server")
	check(flags.Parse(args))
	origin, err := url.Parse(*to)
	check(err)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 4096
	transport.MaxIdleConns = 4096
	transport.DisableCompression = true
	serveUntilInputEnds(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(origin) },
		Transport:     transport,
		FlushInterval: -1,
	})
}
