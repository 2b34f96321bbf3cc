package transport

import (
	"net/url"
	"sync"

	"cortexfs.org/libctx"
	"cortexfs.org/libctx/errdefs"
)

// Pool keeps the transports of one driver, so that connections are there for the
// next request. The zero value is ready; it may be used from any goroutine.
type Pool struct {
	mu         sync.Mutex
	transports map[string]*Transport // by proxy, "" is none
}

// Get is the transport for a proxy, "" is none; terminal is the same at every
// call (see New). A pool that has seen too many different proxies begins anew;
// requests that are going on keep theirs. A proxy that is no URL is
// errdefs.Invalid.
func (p *Pool) Get(proxy string, terminal func(Event) bool) (*Transport, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.transports[proxy]; t != nil {
		return t, nil
	}
	var u *url.URL
	if proxy != "" {
		var err error
		if u, err = url.Parse(proxy); err != nil {
			return nil, errdefs.New(errdefs.Invalid, "the provider's proxy is no URL")
		}
	}
	if p.transports == nil || len(p.transports) >= libctx.MaxProxies {
		for _, t := range p.transports {
			t.CloseIdle()
		}
		p.transports = map[string]*Transport{}
	}
	t := New(u, Standard, terminal)
	p.transports[proxy] = t
	return t, nil
}
