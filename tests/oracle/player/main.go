package player

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/kueue/pkg/features"
	"sigs.k8s.io/kueue/pkg/util/routine"
)

// Recorder keeps the events of the scheduler.
type Recorder struct {
	found chan message
}

// Record keeps one.
func (r *Recorder) Record(object runtime.Object, kind, reason, text string) {
	r.found <- message{Key: keyOf(object.(client.Object)).String(), Type: kind, Reason: reason, Message: text}
}

func (r *Recorder) take() []message {
	var found []message
	for {
		select {
		case it := <-r.found:
			found = append(found, it)
		default:
			return found
		}
	}
}

// atOnce runs what the scheduler would do beside the cycle at its end: the order of goroutines decides nothing.
type atOnce struct{ writing *stopwatch }

func (a atOnce) Run(f func()) {
	defer a.writing.start()()
	f()
}

// reply is one line of output.
type reply struct {
	ID      string   `json:"id"`
	Expect  *answer  `json:"expect,omitempty"`
	LeftOut []string `json:"leftOut,omitempty"`
	Chance  bool     `json:"chance,omitempty"`
	Error   string   `json:"error,omitempty"`
	Crash   string   `json:"crash,omitempty"`
	times
}

// Main answers the cases on standard input, line by line.
func Main(release Release) {
	repeat := flag.Int("repeat", 1, "plays of each case; what differs between them is marked")
	timed := flag.Bool("timed", false, "report how long each cycle took")
	debug.SetGCPercent(1000) // Cases are small and the process lives on: memory is cheaper than time.
	testing.Init()
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	serve := func(t *testing.T) {
		lines := bufio.NewReaderSize(os.Stdin, 1<<20)
		output := json.NewEncoder(os.Stdout)
		output.SetEscapeHTML(false)
		for {
			line, err := lines.ReadBytes('\n')
			if len(line) > 1 {
				found := playRepeatedly(t, release, line, *repeat)
				if !*timed {
					found.times = times{}
				}
				if err := output.Encode(found); err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
			}
			if err != nil {
				os.Exit(0) // The package testing would report a test.
			}
		}
	}
	// The bubble of virtual time belongs to a test, so this program is one.
	testing.Main(func(_, _ string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "oracle", F: serve}}, nil, nil)
}

func playRepeatedly(t *testing.T, release Release, line []byte, repeat int) reply {
	first := playOnce(t, release, line)
	for range repeat - 1 {
		again := playOnce(t, release, line)
		mark(&first, &again)
	}
	return first
}

// mark notes in the first of two plays what chance decides.
func mark(first, again *reply) {
	if first.Expect == nil || again.Expect == nil {
		first.Chance = first.Chance || first.Error != again.Error || first.Crash != again.Crash || (first.Expect == nil) != (again.Expect == nil)
		return
	}
	a, b := first.Expect.parts(), again.Expect.parts()
	if string(a.decisions) != string(b.decisions) {
		first.Chance = true
	}
	for _, it := range []struct {
		name string
		a, b []byte
	}{{"messages", a.messages, b.messages}, {"statuses", a.statuses, b.statuses}} {
		if string(it.a) != string(it.b) && !slices.Contains(first.LeftOut, it.name) {
			first.LeftOut = append(first.LeftOut, it.name)
		}
	}
}

type answerParts struct{ decisions, statuses, messages []byte }

// parts are what is compared of an answer, each for itself.
func (a *answer) parts() answerParts {
	encoded := func(value any) []byte {
		data, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return data
	}
	var cycles []cycle
	var messages []quiet
	for _, it := range a.Cycles {
		bare := *it
		bare.Messages = nil
		cycles = append(cycles, bare)
		messages = append(messages, quiet{N: it.N, T: it.T, Messages: it.Messages})
	}
	end := a.Final
	end.Statuses = nil
	return answerParts{
		decisions: encoded([]any{cycles, end}), statuses: encoded(a.Final.Statuses), messages: encoded([]any{messages, a.QuietMessages}),
	}
}

func playOnce(t *testing.T, release Release, line []byte) reply {
	script, err := decodeCase(line)
	if err != nil {
		return reply{Error: err.Error()}
	}
	found := reply{ID: script.ID}
	gates, err := knownGates(script.FeatureGates)
	if err != nil {
		found.Error = err.Error()
		return found
	}
	var answered *answer
	synctest.Test(t, func(t *testing.T) {
		features.SetFeatureGatesDuringTest(t, gates)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		answered, err = play(ctx, release, script)
	})
	var panicked crash
	switch {
	case errors.As(err, &panicked):
		found.Crash = panicked.Error()
	case err != nil:
		found.Error = err.Error()
	default:
		found.Expect, found.times = answered, answered.took
	}
	return found
}

// knownGates are the gates of a case that the release has. One that it does not have is off.
func knownGates(asked map[string]bool) (map[featuregate.Feature]bool, error) {
	found := map[featuregate.Feature]bool{}
	all := utilfeature.DefaultMutableFeatureGate.GetAll()
	for name, on := range asked {
		if _, known := all[featuregate.Feature(name)]; known {
			found[featuregate.Feature(name)] = on
		} else if on {
			return nil, fmt.Errorf("this release has no gate %q", name)
		}
	}
	return found, nil
}

// play plays a case. Its time is that of the bubble.
func play(ctx context.Context, release Release, script *Case) (found *answer, err error) {
	writing := &stopwatch{}
	routine.DefaultWrapper = atOnce{writing}
	store := newStore(scheme, writing)
	r := &run{
		ctx: ctx, script: script, store: store, writing: writing, manager: &Manager{store: store},
		recorder: &Recorder{found: make(chan message, 1<<16)},
		start:    script.own.Now, events: script.Input.Events,
		jobs: map[types.NamespacedName]*job{}, touched: map[types.NamespacedName]bool{},
		bad: map[string]time.Time{}, later: map[string]*timer{},
		answer: &answer{Cycles: []*cycle{}, Rounds: []round{}},
	}
	store.podsOn = r.podsOn
	r.advance(r.start)
	r.kueue, err = release(ctx, Setup{
		Manager: r.manager, Client: store, Config: script.Config, Clock: virtualClock{run: r}, Recorder: r.recorder,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			err = crash{panicked}
		}
	}()
	r.patience = waitPatiently(ctx, r.kueue.Cache)
	go r.kueue.Queues.CleanUpOnContext(ctx)
	go r.kueue.Cache.CleanUpOnContext(ctx)
	if err := r.manager.start(ctx); err != nil {
		return nil, err
	}
	synctest.Wait()
	if err := r.play(); err != nil {
		return nil, err
	}
	return r.answer, r.conclude()
}
