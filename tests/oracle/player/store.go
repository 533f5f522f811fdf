// Package player plays recorded and drawn runs with the real scheduler, caches, queues and controllers of a release of
// Kueue. What a cluster adds to them is played here: the API server, the delivery of its watch events, jobs, time.
package player

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// change is a watch event of a Workload: old is nil for a new one, new for one that is gone.
type change struct {
	key      types.NamespacedName
	old, new *kueue.Workload
	// scheduled tells that a scheduling cycle wrote it, at is when.
	scheduled bool
	at        time.Time
}

type scheduledKey struct{}

// scheduledBy marks the writes of a scheduling cycle.
func scheduledBy(ctx context.Context) context.Context {
	return context.WithValue(ctx, scheduledKey{}, true)
}

// store is an API server in memory, as far as Kueue's core controllers use one.
type store struct {
	client.Client // nil: a method that nobody plays panics

	mu      sync.Mutex
	scheme  *runtime.Scheme
	objects map[reflect.Type]map[types.NamespacedName]client.Object
	indexes map[reflect.Type]map[string]client.IndexerFunc
	// applied holds what each field manager applied last to the status of a Workload.
	applied map[types.NamespacedName]map[string]map[string]any
	version int64
	changes []change
	// podsOn answers for the pods of workloads, which are not objects.
	podsOn func(node, namespace string) []corev1.Pod
	// busy runs while the store is asked something, as does writing.
	busy, writing *stopwatch
}

func newStore(scheme *runtime.Scheme, writing *stopwatch) *store {
	return &store{
		busy:    &stopwatch{},
		writing: writing,
		scheme:  scheme,
		objects: map[reflect.Type]map[types.NamespacedName]client.Object{},
		indexes: map[reflect.Type]map[string]client.IndexerFunc{},
		applied: map[types.NamespacedName]map[string]map[string]any{},
	}
}

// timed counts until the function that it returns is called.
func (s *store) timed() (stop func()) {
	stopWriting := s.writing.start()
	stopBusy := s.busy.start()
	return func() {
		stopBusy()
		stopWriting()
	}
}

func (s *store) Scheme() *runtime.Scheme { return s.scheme }

func (s *store) Status() client.SubResourceWriter { return statusWriter{store: s} }

func (s *store) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	kind := reflect.TypeOf(object)
	if s.indexes[kind] == nil {
		s.indexes[kind] = map[string]client.IndexerFunc{}
	}
	s.indexes[kind][field] = extract
	return nil
}

func keyOf(object client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func assign(into, from client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}

func (s *store) resource(object client.Object) schema.GroupResource {
	return schema.GroupResource{Resource: strings.ToLower(reflect.TypeOf(object).Elem().Name()) + "s"}
}

// find returns the stored object of the kind and key of another. The caller holds the lock and does not change it.
func (s *store) find(object client.Object) (client.Object, error) {
	if found := s.objects[reflect.TypeOf(object)][keyOf(object)]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(s.resource(object), object.GetName())
}

// put stores an object under a new version, and reports the change of a Workload.
func (s *store) put(ctx context.Context, object client.Object) {
	kind, key := reflect.TypeOf(object), keyOf(object)
	if s.objects[kind] == nil {
		s.objects[kind] = map[types.NamespacedName]client.Object{}
	}
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	old, _ := s.objects[kind][key].(*kueue.Workload)
	s.objects[kind][key] = object
	if workload, is := object.(*kueue.Workload); is {
		scheduled := ctx.Value(scheduledKey{}) != nil
		s.changes = append(s.changes, change{key: key, old: old, new: workload, scheduled: scheduled, at: time.Now()})
	}
}

func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	defer s.timed()()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.objects[reflect.TypeOf(into)][key]
	if found == nil {
		return apierrors.NewNotFound(s.resource(into), key.Name)
	}
	assign(into, found)
	return nil
}

// keys are the keys of a kind in order: Kueue must not see the order of a Go map.
func (s *store) keys(kind reflect.Type) []types.NamespacedName {
	keys := make([]types.NamespacedName, 0, len(s.objects[kind]))
	for key := range s.objects[kind] {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return keys
}

func (s *store) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	defer s.timed()()
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if err := s.list(list, &asked); err != nil {
		return err
	}
	if pods, is := list.(*corev1.PodList); is && s.podsOn != nil && asked.FieldSelector != nil {
		for _, field := range asked.FieldSelector.Requirements() {
			if field.Field == "spec.nodeName" {
				pods.Items = append(pods.Items, s.podsOn(field.Value, asked.Namespace)...)
			}
		}
	}
	return nil
}

func (s *store) list(list client.ObjectList, asked *client.ListOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	kind := reflect.PointerTo(items.Type().Elem())
	found := reflect.MakeSlice(items.Type(), 0, 0)
	for _, key := range s.keys(kind) {
		object := s.objects[kind][key]
		matches, err := s.matches(object, asked)
		if err != nil {
			return err
		}
		if matches {
			found = reflect.Append(found, reflect.ValueOf(object.DeepCopyObject()).Elem())
		}
	}
	items.Set(found)
	return nil
}

func (s *store) matches(object client.Object, asked *client.ListOptions) (bool, error) {
	if asked.Namespace != "" && object.GetNamespace() != asked.Namespace {
		return false, nil
	}
	if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false, nil
	}
	if asked.FieldSelector == nil {
		return true, nil
	}
	for _, field := range asked.FieldSelector.Requirements() {
		extract := s.indexes[reflect.TypeOf(object)][field.Field]
		if extract == nil {
			return false, fmt.Errorf("no index %q of %T", field.Field, object)
		}
		if !slices.Contains(extract(object), field.Value) {
			return false, nil
		}
	}
	return true, nil
}

func (s *store) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	defer s.timed()()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(object); err == nil {
		return apierrors.NewAlreadyExists(s.resource(object), object.GetName())
	}
	if object.GetGeneration() == 0 {
		object.SetGeneration(1)
	}
	if object.GetUID() == "" {
		object.SetUID(types.UID(object.GetName()))
	}
	if created := object.GetCreationTimestamp(); created.IsZero() {
		object.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	s.put(ctx, object.DeepCopyObject().(client.Object))
	return nil
}

func (s *store) conflict(object, stored client.Object) error {
	if version := object.GetResourceVersion(); version != "" && version != stored.GetResourceVersion() {
		return apierrors.NewConflict(s.resource(object), object.GetName(), fmt.Errorf("the object has been modified"))
	}
	return nil
}

func part(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

// Update replaces everything but the status.
func (s *store) Update(ctx context.Context, object client.Object, _ ...client.UpdateOption) error {
	defer s.timed()()
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.find(object)
	if err != nil {
		return err
	}
	if err := s.conflict(object, stored); err != nil {
		return err
	}
	next := object.DeepCopyObject().(client.Object)
	if status := part(next, "Status"); status.IsValid() {
		status.Set(part(stored.DeepCopyObject().(client.Object), "Status"))
	}
	s.replace(ctx, stored, next)
	assign(object, next)
	return nil
}

// replace stores a new state of an object. The generation counts the changes of its spec.
func (s *store) replace(ctx context.Context, stored, next client.Object) {
	next.SetUID(stored.GetUID())
	next.SetCreationTimestamp(stored.GetCreationTimestamp())
	next.SetGeneration(stored.GetGeneration())
	if spec := part(next, "Spec"); spec.IsValid() && !equality.Semantic.DeepEqual(spec.Interface(), part(stored, "Spec").Interface()) {
		next.SetGeneration(stored.GetGeneration() + 1)
	}
	s.put(ctx, next)
}

func (s *store) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	defer s.timed()()
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, err := s.find(object)
	if err != nil {
		return err
	}
	delete(s.objects[reflect.TypeOf(object)], keyOf(object))
	if workload, is := stored.(*kueue.Workload); is {
		delete(s.applied, keyOf(object))
		s.changes = append(s.changes, change{key: keyOf(object), old: workload})
	}
	return nil
}

// Patch merges: nobody here applies anything but a status.
func (s *store) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	defer s.timed()()
	if patch.Type() != types.MergePatchType {
		return fmt.Errorf("patch of type %s for %T", patch.Type(), object)
	}
	next, err := s.merged(object, patch)
	if err != nil {
		return err
	}
	if err := s.Update(ctx, next); err != nil {
		return err
	}
	assign(object, next)
	return nil
}

func (s *store) merged(object client.Object, patch client.Patch) (client.Object, error) {
	data, err := patch.Data(object)
	if err != nil {
		return nil, err
	}
	var changes map[string]any
	if err := json.Unmarshal(data, &changes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	stored, err := s.find(object)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	next := reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	if err := decodeInto(mergePatch(encode(stored), changes), next); err != nil {
		return nil, err
	}
	if next.GetResourceVersion() != stored.GetResourceVersion() {
		if err := s.conflict(next, stored); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// statusWriter writes the status and nothing else.
type statusWriter struct {
	client.SubResourceWriter
	store *store
}

func (w statusWriter) Update(ctx context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	defer w.store.timed()()
	return w.write(ctx, object, func(stored client.Object) (client.Object, error) {
		next := stored.DeepCopyObject().(client.Object)
		part(next, "Status").Set(part(object.DeepCopyObject().(client.Object), "Status"))
		return next, nil
	})
}

func (w statusWriter) Patch(
	ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	defer w.store.timed()()
	if patch.Type() == types.MergePatchType {
		merged, err := w.store.merged(object, patch)
		if err != nil {
			return err
		}
		if err := w.Update(ctx, merged); err != nil {
			return err
		}
		assign(object, merged)
		return nil
	}
	asked := client.SubResourcePatchOptions{}
	asked.ApplyOptions(options)
	applied, is := object.(*kueue.Workload)
	if patch.Type() != types.ApplyPatchType || !is {
		return fmt.Errorf("status patch of type %s for %T", patch.Type(), object)
	}
	return w.write(ctx, object, func(stored client.Object) (client.Object, error) {
		return w.store.apply(stored.(*kueue.Workload), applied, asked.FieldManager)
	})
}

func (w statusWriter) write(
	ctx context.Context, object client.Object, next func(client.Object) (client.Object, error),
) error {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	stored, err := w.store.find(object)
	if err != nil {
		return err
	}
	if err := w.store.conflict(object, stored); err != nil {
		return err
	}
	written, err := next(stored)
	if err != nil {
		return err
	}
	if err := validConditions(w.store.resource(object), written); err != nil {
		return err
	}
	// The API server does not write what is already there.
	if !equality.Semantic.DeepEqual(part(stored, "Status").Interface(), part(written, "Status").Interface()) {
		w.store.put(ctx, written)
	}
	assign(object, written)
	return nil
}

// validConditions refuses a condition without a reason, as the definition of a Workload does.
func validConditions(resource schema.GroupResource, object client.Object) error {
	workload, is := object.(*kueue.Workload)
	if !is {
		return nil
	}
	for _, condition := range workload.Status.Conditions {
		if condition.Reason == "" {
			return apierrors.NewBadRequest(fmt.Sprintf("%s %q: the condition %s has no reason", resource, workload.Name, condition.Type))
		}
	}
	return nil
}

// takeChanges returns the watch events since the last call.
func (s *store) takeChanges() []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.changes
	s.changes = nil
	return changes
}

// workload returns a copy of a Workload, nil if there is none.
func (s *store) workload(key types.NamespacedName) *kueue.Workload {
	found := &kueue.Workload{}
	if s.Get(context.Background(), key, found) != nil {
		return nil
	}
	return found
}

// workloads returns copies of all, sorted by key.
func (s *store) workloads() []kueue.Workload {
	list := &kueue.WorkloadList{}
	_ = s.List(context.Background(), list)
	return list.Items
}

// workloadOf returns the key of the Workload with this UID, the first if there are several.
func (s *store) workloadOf(uid types.UID) (first types.NamespacedName, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, object := range s.objects[reflect.TypeFor[*kueue.Workload]()] {
		if object.GetUID() == uid && (!found || key.String() < first.String()) {
			first, found = key, true
		}
	}
	return first, found
}
