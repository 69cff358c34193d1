package supervise

import "sync/atomic"

// failure is the first error of a sensor, after which it cannot go on. The zero value
// means no failure.
type failure struct {
	first  atomic.Pointer[error]
	report func(error) // is called once, on a goroutine of its own; may be nil
}

func (f *failure) set(err error) {
	if f.first.CompareAndSwap(nil, &err) && f.report != nil {
		go f.report(err)
	}
}

// err is the error, nil for none.
func (f *failure) err() error {
	if p := f.first.Load(); p != nil {
		return *p
	}
	return nil
}
