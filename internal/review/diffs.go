//go:build linux

package review

import (
	"cmp"
	"context"
	"runtime"
)

// Diffs compares the sides of each change of list, several at a time, and hands
// them to f in the order of the list. f gets the error of a change that could
// not be compared, and ends the whole with one of its own.
func (s *Set) Diffs(ctx context.Context, list []*Change, f func(*Change, *Diff, error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type one struct {
		c    *Change
		d    *Diff
		err  error
		done chan struct{}
	}
	n := min(max(runtime.GOMAXPROCS(0), 2), 8)
	todo, inOrder := make(chan *one), make(chan *one, 4*n) // the second bounds what is held
	for range n {
		go func() {
			for o := range todo {
				o.d, o.err = s.Diff(o.c)
				close(o.done)
			}
		}()
	}
	go func() {
		defer close(inOrder)
		defer close(todo)
		for _, c := range list {
			o := &one{c: c, done: make(chan struct{})}
			select {
			case inOrder <- o:
			case <-ctx.Done():
				return
			}
			todo <- o
		}
	}()
	var err error
	handed := 0
	for o := range inOrder { // to its end, so that nobody is left behind
		<-o.done
		if handed++; err == nil {
			err = ctx.Err()
		}
		if err == nil {
			if err = f(o.c, o.d, o.err); err != nil {
				cancel()
			}
		}
	}
	if handed < len(list) {
		err = cmp.Or(err, ctx.Err()) // the list was cut short between two changes
	}
	return err
}
