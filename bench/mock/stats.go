package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// stats counts requests as a whole and by model. Times are Unix milliseconds with a fraction.
type stats struct {
	mutex  sync.RWMutex
	all    *counts
	models map[string]*counts
}

type counts struct {
	whole       *counts
	requests    atomic.Int64
	answered    atomic.Int64
	dropped     atomic.Int64
	inFlight    atomic.Int64
	maxInFlight atomic.Int64
	firstNanos  atomic.Int64
	lastNanos   atomic.Int64
	lastAnswer  atomic.Int64
	busyNanos   atomic.Int64
}

func newStats() stats {
	return stats{all: &counts{}, models: map[string]*counts{}}
}

func (s *stats) reset() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.all = &counts{}
	s.models = map[string]*counts{}
}

// started counts a request that is there in full; what it returns is for ended.
func (s *stats) started(model []byte) *counts {
	s.mutex.RLock()
	of, known := s.models[string(model)]
	s.mutex.RUnlock()
	if !known {
		of = s.add(string(model))
	}
	now := time.Now().UnixNano()
	of.start(now)
	of.whole.start(now)
	return of
}

func (s *stats) add(model string) *counts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if of, known := s.models[model]; known {
		return of
	}
	of := &counts{whole: s.all}
	s.models[model] = of
	return of
}

func (s *stats) ended(of *counts, took time.Duration, delivered bool) {
	now := time.Now().UnixNano()
	of.end(now, took, delivered)
	of.whole.end(now, took, delivered)
}

func (c *counts) start(nowNanos int64) {
	c.requests.Add(1)
	c.firstNanos.CompareAndSwap(0, nowNanos)
	raise(&c.lastNanos, nowNanos)
	raise(&c.maxInFlight, c.inFlight.Add(1))
}

func (c *counts) end(nowNanos int64, took time.Duration, delivered bool) {
	c.inFlight.Add(-1)
	if !delivered {
		c.dropped.Add(1)
		return
	}
	c.answered.Add(1)
	c.busyNanos.Add(int64(took))
	raise(&c.lastAnswer, nowNanos)
}

func raise(value *atomic.Int64, to int64) {
	for {
		known := value.Load()
		if to <= known || value.CompareAndSwap(known, to) {
			return
		}
	}
}

type countsView struct {
	Requests       int64   `json:"requests"`
	Answered       int64   `json:"answered"`
	Dropped        int64   `json:"dropped"`
	InFlight       int64   `json:"inFlight"`
	MaxInFlight    int64   `json:"maxInFlight"`
	FirstRequestMs float64 `json:"firstRequestMs"`
	LastRequestMs  float64 `json:"lastRequestMs"`
	LastAnswerMs   float64 `json:"lastAnswerMs"`
	MeanAnswerMs   float64 `json:"meanAnswerMs"`
}

type statsView struct {
	countsView
	Models map[string]countsView `json:"models"`
}

func (c *counts) view() countsView {
	answered := c.answered.Load()
	return countsView{
		Requests:       c.requests.Load(),
		Answered:       answered,
		Dropped:        c.dropped.Load(),
		InFlight:       c.inFlight.Load(),
		MaxInFlight:    c.maxInFlight.Load(),
		FirstRequestMs: float64(c.firstNanos.Load()) / 1e6,
		LastRequestMs:  float64(c.lastNanos.Load()) / 1e6,
		LastAnswerMs:   float64(c.lastAnswer.Load()) / 1e6,
		MeanAnswerMs:   float64(c.busyNanos.Load()) / 1e6 / float64(max(1, answered)),
	}
}

func (s *stats) snapshot() statsView {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	view := statsView{countsView: s.all.view(), Models: map[string]countsView{}}
	for model, of := range s.models {
		view.Models[model] = of.view()
	}
	return view
}
