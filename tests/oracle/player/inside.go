package player

import "reflect"

// inside finds a field of a struct that its package keeps to itself, to read it.
func inside(value any, names ...string) reflect.Value {
	found, is := value.(reflect.Value)
	if !is {
		found = reflect.ValueOf(value)
	}
	for _, name := range names {
		for found.Kind() == reflect.Pointer || found.Kind() == reflect.Interface {
			found = found.Elem()
		}
		found = found.FieldByName(name)
	}
	return found
}
