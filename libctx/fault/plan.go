//go:build faults

package fault

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// rule is one word of CTX_FAULTS about points.
type rule struct {
	point string // "session.*": every point that begins so
	err   error  // nil: kill
	p     float64
	left  int // how often it may still strike; -1: for ever
}

// plan is what CTX_FAULTS says, with the state of its rules.
type plan struct {
	rules []*rule
	off   map[string]bool
	shift time.Duration
	jump  time.Duration
	seed  uint64
	log   string

	mu     sync.Mutex
	random *rand.Rand
}

// drawn is what happens at a point this time.
type drawn struct {
	kill bool
	err  error
}

var errnos = map[string]error{"enospc": unix.ENOSPC, "eio": unix.EIO, "erofs": unix.EROFS, "edquot": unix.EDQUOT}

// parse reads words separated by commas:
//
//	POINT=kill|enospc|eio|erofs|edquot[:PROBABILITY[:TIMES]]
//	GROUP:CHECK=off
//	clock=DURATION  clock=jump:DURATION  seed=N  log=PATH
func parse(text string) (*plan, error) {
	p := &plan{off: map[string]bool{}}
	for _, word := range strings.Split(text, ",") {
		if word == "" {
			continue
		}
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, fmt.Errorf("%q has no value", word)
		}
		var err error
		switch name {
		case "seed":
			p.seed, err = strconv.ParseUint(value, 10, 64)
		case "log":
			p.log = value
		case "clock":
			jump, isJump := strings.CutPrefix(value, "jump:")
			if isJump {
				p.jump, err = time.ParseDuration(jump)
			} else {
				p.shift, err = time.ParseDuration(value)
			}
		default:
			if value == "off" {
				p.off[name] = true
				break
			}
			var r *rule
			if r, err = parseRule(name, value); err == nil {
				p.rules = append(p.rules, r)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
	}
	return p, nil
}

func parseRule(point, value string) (*rule, error) {
	parts := strings.Split(value, ":")
	r := &rule{point: point, p: 1, left: -1}
	if parts[0] != "kill" {
		if r.err = errnos[parts[0]]; r.err == nil {
			return nil, fmt.Errorf("unknown fault %q", parts[0])
		}
	}
	var err error
	if len(parts) > 1 {
		r.p, err = strconv.ParseFloat(parts[1], 64)
	}
	if err == nil && len(parts) > 2 {
		r.left, err = strconv.Atoi(parts[2])
	}
	if err == nil && (len(parts) > 3 || r.p < 0 || r.p > 1) {
		err = fmt.Errorf("want FAULT[:PROBABILITY[:TIMES]]")
	}
	return r, err
}

// draw decides what happens at a point.
func (p *plan) draw(name string) drawn {
	if len(p.rules) == 0 {
		return drawn{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rules {
		if !r.matches(name) || r.left == 0 || p.random.Float64() >= r.p {
			continue
		}
		if r.left > 0 {
			r.left--
		}
		return drawn{kill: r.err == nil, err: r.err}
	}
	return drawn{}
}

func (r *rule) matches(name string) bool {
	if prefix, ok := strings.CutSuffix(r.point, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return r.point == name
}

// part is how much of a write of n bytes still happens.
func (p *plan) part(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n + 1)
}
