package player

import (
	"encoding/json"
	"fmt"
	"maps"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// listKeys name the fields that tell apart the entries of the lists in a Workload's status; other lists are atomic.
var listKeys = map[string][]string{
	"conditions":       {"type"},
	"admissionChecks":  {"name"},
	"reclaimablePods":  {"name"},
	"resourceRequests": {"name"},
	"unhealthyNodes":   {"name"},
	"preemptionGates":  {"name"},
	"evictions":        {"reason", "underlyingCause"},
}

func encode(value any) map[string]any {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var found map[string]any
	if err := json.Unmarshal(data, &found); err != nil {
		panic(err)
	}
	return found
}

func decodeInto(value map[string]any, into any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// apply does what server-side apply does, for the status of a Workload: a manager's fields become those of the patch,
// and fields that it applied before and left out now are gone.
func (s *store) apply(stored, patch *kueue.Workload, manager string) (*kueue.Workload, error) {
	key := keyOf(stored)
	if s.applied[key] == nil {
		s.applied[key] = map[string]map[string]any{}
	}
	wanted := encode(patch.Status)
	live := without(encode(stored.Status), s.applied[key][manager], wanted)
	next := stored.DeepCopy()
	next.Status = kueue.WorkloadStatus{}
	if err := decodeInto(with(live, wanted), &next.Status); err != nil {
		return nil, err
	}
	s.applied[key][manager] = wanted
	return next, nil
}

func entryKey(entry any, fields []string) string {
	found := ""
	for _, field := range fields {
		found += fmt.Sprint(entry.(map[string]any)[field]) + "\x00"
	}
	return found
}

func entries(list []any, fields []string) map[string]any {
	found := make(map[string]any, len(list))
	for _, entry := range list {
		found[entryKey(entry, fields)] = entry
	}
	return found
}

// without takes from live what was applied before and is not wanted any more.
func without(live, before, wanted map[string]any) map[string]any {
	found := maps.Clone(live)
	for name, old := range before {
		current, there := found[name]
		if !there {
			continue
		}
		switch old := old.(type) {
		case map[string]any:
			currentMap, is := current.(map[string]any)
			if !is {
				break
			}
			wantedMap, _ := wanted[name].(map[string]any)
			if left := without(currentMap, old, wantedMap); len(left) > 0 || wantedMap != nil {
				found[name] = left
			} else {
				delete(found, name)
			}
		case []any:
			fields, wantedList := listKeys[name], []any(nil)
			wantedList, _ = wanted[name].([]any)
			if fields == nil {
				if wantedList == nil {
					delete(found, name)
				}
				break
			}
			had, keep := entries(old, fields), entries(wantedList, fields)
			var left []any
			for _, entry := range current.([]any) {
				key := entryKey(entry, fields)
				if had[key] == nil || keep[key] != nil {
					left = append(left, entry)
				}
			}
			if len(left) == 0 {
				delete(found, name)
			} else {
				found[name] = left
			}
		default:
			if _, still := wanted[name]; !still {
				delete(found, name)
			}
		}
	}
	return found
}

// with puts what is wanted over live.
func with(live, wanted map[string]any) map[string]any {
	for name, value := range wanted {
		switch value := value.(type) {
		case map[string]any:
			if current, is := live[name].(map[string]any); is && name != "admission" {
				live[name] = with(current, value)
			} else {
				live[name] = value
			}
		case []any:
			fields := listKeys[name]
			current, is := live[name].([]any)
			if fields == nil || !is {
				live[name] = value
				break
			}
			news := entries(value, fields)
			var merged []any
			for _, entry := range current {
				key := entryKey(entry, fields)
				if replacement := news[key]; replacement != nil {
					entry = replacement
					delete(news, key)
				}
				merged = append(merged, entry)
			}
			for _, entry := range value {
				if news[entryKey(entry, fields)] != nil {
					merged = append(merged, entry)
				}
			}
			live[name] = merged
		default:
			live[name] = value
		}
	}
	return live
}

// mergePatch is RFC 7386.
func mergePatch(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		if value == nil {
			delete(target, name)
		} else if nested, is := value.(map[string]any); is {
			current, _ := target[name].(map[string]any)
			target[name] = mergePatch(current, nested)
		} else {
			target[name] = value
		}
	}
	return target
}
