package player

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Manager takes the place of a controller manager: Kueue's own set-up code registers its controllers here, with their
// predicates and event handlers, and the player calls them in an order that does not change.
type Manager struct {
	manager.Manager // nil: a method that nobody plays panics

	store       *store
	controllers []*controller
	// Runnables are what else the set-up code wants to be started.
	Runnables []manager.Runnable
}

// controller is one of Kueue's controllers: its reconciler, its event handlers for each kind, and who waits for it.
type controller struct {
	name     string
	do       reconcile.Reconciler
	watches  reflect.Value
	handlers map[reflect.Type][]toolscache.ResourceEventHandler
	waiting  *requests
}

func (m *Manager) GetClient() client.Client             { return m.store }
func (m *Manager) GetAPIReader() client.Reader          { return m.store }
func (m *Manager) GetScheme() *runtime.Scheme           { return m.store.scheme }
func (m *Manager) GetCache() cache.Cache                { return informers{} }
func (m *Manager) GetFieldIndexer() client.FieldIndexer { return m.store }
func (m *Manager) GetLogger() logr.Logger               { return logr.Discard() }
func (m *Manager) GetConfig() *rest.Config              { return &rest.Config{} }
func (m *Manager) GetHTTPClient() *http.Client          { return http.DefaultClient }
func (m *Manager) GetRESTMapper() meta.RESTMapper       { return meta.NewDefaultRESTMapper(nil) }
func (m *Manager) Elected() <-chan struct{}             { return nil }

func (m *Manager) GetControllerOptions() config.Controller {
	again := true // The same names register for every case.
	return config.Controller{SkipNameValidation: &again}
}

// Add takes a controller apart, or keeps what else should be started.
func (m *Manager) Add(runnable manager.Runnable) error {
	parts := reflect.ValueOf(runnable)
	if parts.Kind() != reflect.Pointer || !parts.Elem().FieldByName("Do").IsValid() {
		m.Runnables = append(m.Runnables, runnable)
		return nil
	}
	m.controllers = append(m.controllers, &controller{
		name:     parts.Elem().FieldByName("Name").String(),
		do:       parts.Elem().FieldByName("Do").Interface().(reconcile.Reconciler),
		watches:  parts.Elem().FieldByName("startWatches"),
		handlers: map[reflect.Type][]toolscache.ResourceEventHandler{},
		waiting:  &requests{},
	})
	return nil
}

// GetEventRecorder is for controllers, whose events no run compares.
func (m *Manager) GetEventRecorder(string) events.EventRecorder { return noEvents{} }

// GetEventRecorderFor is what older releases call.
func (m *Manager) GetEventRecorderFor(string) record.EventRecorder { return &record.FakeRecorder{} }

type noEvents struct{}

func (noEvents) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// start lets every controller watch what it watches. The goroutines of its channels end with the context.
func (m *Manager) start(ctx context.Context) error {
	for _, it := range m.controllers {
		// The builder adds the watches after it has added the controller, so they can only be read now.
		watches := *(*[]source.TypedSource[reconcile.Request])(unsafe.Pointer(it.watches.UnsafeAddr()))
		for _, watch := range watches {
			if err := watch.Start(context.WithValue(ctx, controllerKey{}, it), it.waiting); err != nil {
				return err
			}
		}
	}
	return nil
}

// named returns the controller of a name, nil if the release or its gates do not have it.
func (m *Manager) named(name string) *controller {
	for _, it := range m.controllers {
		if it.name == name {
			return it
		}
	}
	return nil
}

// deliver hands a watch event to the handlers of a controller: old is nil for a new object, new for one that is gone.
func (c *controller) deliver(old, new client.Object) {
	kind := reflect.TypeOf(new)
	if isNil(new) {
		kind = reflect.TypeOf(old)
	}
	for _, handler := range c.handlers[kind] {
		switch {
		case isNil(old):
			handler.OnAdd(new, false)
		case isNil(new):
			handler.OnDelete(old)
		default:
			handler.OnUpdate(old, new)
		}
	}
}

func isNil(object client.Object) bool {
	return object == nil || reflect.ValueOf(object).IsNil()
}

type controllerKey struct{}

// informers hand the event handlers of a controller to the player.
type informers struct {
	cache.Cache // nil: a method that nobody plays panics
}

func (informers) WaitForCacheSync(context.Context) bool { return true }

func (informers) GetInformer(ctx context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{controller: ctx.Value(controllerKey{}).(*controller), kind: reflect.TypeOf(object)}, nil
}

type informer struct {
	cache.Informer // nil: a method that nobody plays panics
	controller     *controller
	kind           reflect.Type
}

func (i informer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	i.controller.waiting.Lock()
	defer i.controller.waiting.Unlock()
	i.controller.handlers[i.kind] = append(i.controller.handlers[i.kind], handler)
	return synced{}, nil
}

type synced struct {
	toolscache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

// requests is the queue of a controller. What Kueue delays to batch it is there at once.
type requests struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request] // nil: a method that nobody plays panics
	sync.Mutex
	found []reconcile.Request
}

func (r *requests) Add(request reconcile.Request) {
	r.Lock()
	defer r.Unlock()
	if !slices.Contains(r.found, request) {
		r.found = append(r.found, request)
	}
}

func (r *requests) AddAfter(request reconcile.Request, _ time.Duration) { r.Add(request) }
func (r *requests) AddRateLimited(request reconcile.Request)            { r.Add(request) }

// take returns the requests in the order of their keys.
func (r *requests) take() []reconcile.Request {
	r.Lock()
	defer r.Unlock()
	found := r.found
	r.found = nil
	slices.SortFunc(found, func(a, b reconcile.Request) int { return strings.Compare(a.String(), b.String()) })
	return found
}
