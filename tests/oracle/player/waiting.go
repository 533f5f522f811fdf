package player

import (
	"context"
	"sync"
	"unsafe"

	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
)

// patience stands between a cycle that waits until pods are ready and the cache: it looks again only when everything of
// an instant has happened, and not whenever the scheduler's goroutine happens to run.
type patience struct {
	sync.Locker
	ctx  context.Context
	look chan struct{}
}

// waitPatiently takes the place of the lock that the cache gives to its condition variable.
func waitPatiently(ctx context.Context, cache *schdcache.Cache) *patience {
	condition := (*sync.Cond)(unsafe.Pointer(inside(cache, "podsReadyCond").UnsafeAddr()))
	found := &patience{Locker: condition.L, ctx: ctx, look: make(chan struct{})}
	condition.L = found
	return found
}

func (p *patience) Lock() {
	select {
	case <-p.look:
	case <-p.ctx.Done():
	}
	p.Locker.Lock()
}

// over lets a cycle look again, if anything has woken it.
func (p *patience) over() {
	select {
	case p.look <- struct{}{}:
	default:
	}
}
