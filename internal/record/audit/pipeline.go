package audit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// blockSize is how much of a log is processed at once, in bytes.
const blockSize = 256 << 10

// block is some whole lines of a log, and at its end the bytes without a newline.
type block[T any] struct {
	data   []byte
	offset int64          // of data in the file
	words  map[string]any // decoded from it, or blocks before
	result T
	done   chan struct{} // of capacity 1: the result is there
}

// maxWords is how many words of a block are passed to the next.
const maxWords = 100

// parse fills r from a line of b.
func (b *block[T]) parse(line []byte, r *Record) error {
	err := parseLine(line, r)
	r.words = b.words
	return err
}

// pipeline reads r in blocks, processes them in parallel, and takes the results
// in order. It returns when all its goroutines have ended. However long r is,
// it holds a few blocks; blocks, with the content of their results, are reused.
func pipeline[T any](ctx context.Context, r io.Reader, workers int, work func(*block[T]) error, take func(*block[T]) error) error {
	workers = max(workers, 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := 2*workers + 1
	free, jobs, order := make(chan *block[T], slots), make(chan *block[T], slots), make(chan *block[T], slots)
	for range slots {
		free <- &block[T]{done: make(chan struct{}, 1)}
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer close(jobs)
		defer close(order)
		if err := split(ctx, r, free, jobs, order); err != nil {
			cancel(err)
		}
	})
	for range workers {
		all.Go(func() {
			for b := range jobs {
				if ctx.Err() == nil {
					if err := work(b); err != nil {
						cancel(err)
					}
				}
				b.done <- struct{}{}
			}
		})
	}
	for b := range order {
		<-b.done
		if ctx.Err() == nil {
			if err := take(b); err != nil {
				cancel(err)
			}
		}
		free <- b
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return nil
}

// split cuts r into blocks at newlines.
func split[T any](ctx context.Context, r io.Reader, free <-chan *block[T], jobs, order chan<- *block[T]) error {
	var rest []byte
	offset := int64(0)
	for ctx.Err() == nil {
		b := <-free
		var end bool
		var err error
		b.data, end, err = fill(r, append(b.data[:0], rest...))
		if err != nil {
			return err
		}
		cut := len(b.data)
		if !end {
			if i := bytes.LastIndexByte(b.data, '\n'); i >= 0 {
				cut = i + 1
			}
		}
		rest = append(rest[:0], b.data[cut:]...)
		b.data, b.offset = b.data[:cut], offset
		if b.words == nil || len(b.words) > maxWords {
			b.words = map[string]any{}
		}
		offset += int64(cut)
		order <- b
		jobs <- b
		if end {
			return nil
		}
	}
	return nil
}

// fill reads until data is a block with a newline, or longer than any line.
func fill(r io.Reader, data []byte) (_ []byte, end bool, err error) {
	size := blockSize
	for {
		for size <= len(data) {
			size *= 2
		}
		if cap(data) < size {
			data = append(make([]byte, 0, size), data...)
		}
		n, err := io.ReadFull(r, data[len(data):size])
		data = data[:len(data)+n]
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return data, true, nil
		case err != nil:
			return data, false, err
		case size > maxLine || bytes.IndexByte(data, '\n') >= 0:
			return data, false, nil
		}
	}
}

// lines calls f with each line of a block, without its newline, and its offset
// in the file. whole is false for the rest without a newline.
func (b *block[T]) lines(f func(line []byte, at int64, whole bool) error) error {
	for i := 0; i < len(b.data); {
		end := bytes.IndexByte(b.data[i:], '\n')
		line, next, whole := b.data[i:], len(b.data), false
		if end >= 0 {
			line, next, whole = b.data[i:i+end], i+end+1, true
		}
		if err := f(line, b.offset+int64(i), whole); err != nil {
			return err
		}
		i = next
	}
	return nil
}
