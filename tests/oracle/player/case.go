package player

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Case is a run to be played, as recorded runs are written.
type Case struct {
	ID           string            `json:"id"`
	FeatureGates map[string]bool   `json:"featureGates"`
	RawConfig    json.RawMessage   `json:"config"`
	Objects      []json.RawMessage `json:"objects"`
	Input        struct {
		Events []event `json:"events"`
	} `json:"input"`

	// Config is Kueue's configuration, with its defaults.
	Config *configapi.Configuration `json:"-"`
	// own is the part of the configuration that is the player's.
	own struct {
		Now             time.Time              `json:"now"`
		CycleStepMs     int64                  `json:"cycleStepMs"`
		QuietCycles     int                    `json:"quietCycles"`
		MaxCycles       int                    `json:"maxCycles"`
		EvictionSeconds float64                `json:"evictionSeconds"`
		AdmissionChecks map[string]checkScript `json:"admissionChecks"`
	}
}

// checkScript is what an admission check controller does: Ready after a time, with a node selector for the pods.
type checkScript struct {
	Seconds      float64           `json:"seconds"`
	NodeSelector map[string]string `json:"nodeSelector"`
}

// event is something that happens from outside.
type event struct {
	At     float64         `json:"at"`
	Op     string          `json:"op"`
	Kind   string          `json:"kind"`
	Key    string          `json:"key"`
	Object json.RawMessage `json:"object"`
	jobScript
}

// jobScript is what the job of a Workload does.
type jobScript struct {
	RunSeconds     *float64   `json:"runSeconds"`
	ReadySeconds   []*float64 `json:"readySeconds"`
	FailSeconds    *float64   `json:"failSeconds"`
	RecoverSeconds *float64   `json:"recoverSeconds"`
	LingerSeconds  *float64   `json:"lingerSeconds"`
}

func seconds(value float64) time.Duration {
	return time.Duration(value * float64(time.Second))
}

// scheme knows all kinds that a case may hold.
var scheme = newScheme()

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, configapi.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return scheme
}

var kinds = map[string]func() client.Object{
	"AdmissionCheck":        func() client.Object { return &kueue.AdmissionCheck{} },
	"ClusterQueue":          func() client.Object { return &kueue.ClusterQueue{} },
	"Cohort":                func() client.Object { return &kueue.Cohort{} },
	"LimitRange":            func() client.Object { return &corev1.LimitRange{} },
	"LocalQueue":            func() client.Object { return &kueue.LocalQueue{} },
	"Namespace":             func() client.Object { return &corev1.Namespace{} },
	"Node":                  func() client.Object { return &corev1.Node{} },
	"Pod":                   func() client.Object { return &corev1.Pod{} },
	"PriorityClass":         func() client.Object { return &schedulingv1.PriorityClass{} },
	"ResourceFlavor":        func() client.Object { return &kueue.ResourceFlavor{} },
	"RuntimeClass":          func() client.Object { return &nodev1.RuntimeClass{} },
	"Topology":              func() client.Object { return &kueue.Topology{} },
	"Workload":              func() client.Object { return &kueue.Workload{} },
	"WorkloadPriorityClass": func() client.Object { return &kueue.WorkloadPriorityClass{} },
}

func newObject(kind string) (client.Object, error) {
	if kinds[kind] == nil {
		return nil, fmt.Errorf("the player has no objects of kind %q", kind)
	}
	return kinds[kind](), nil
}

func decodeObject(raw json.RawMessage) (client.Object, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	object, err := newObject(head.Kind)
	if err != nil {
		return nil, err
	}
	return object, json.Unmarshal(raw, object)
}

// decodeCase reads a case.
func decodeCase(line []byte) (*Case, error) {
	found := &Case{}
	if err := json.Unmarshal(line, found); err != nil {
		return nil, err
	}
	found.own.CycleStepMs, found.own.QuietCycles, found.own.MaxCycles = 1000, 2, 500
	found.own.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	found.Config = &configapi.Configuration{}
	if found.RawConfig != nil {
		if err := json.Unmarshal(found.RawConfig, &found.own); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(found.RawConfig, found.Config); err != nil {
			return nil, err
		}
	}
	waits := found.Config.WaitForPodsReady != nil
	configapi.SetDefaults_Configuration(found.Config)
	if !waits {
		// The default waits in every cluster; a run whose jobs do not say when their pods are ready does not.
		found.Config.WaitForPodsReady = nil
	}
	found.Config.LeaderElection = nil
	return found, nil
}
