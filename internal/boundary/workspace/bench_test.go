//go:build linux

package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// plant makes a tree of 1,500 directories and 20,000 files.
func plant(b *testing.B) string {
	root := b.TempDir()
	for i := range 1500 {
		d := filepath.Join(root, fmt.Sprintf("mod%02d/pkg%02d/d%02d", i%15, i/15%10, i/150))
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 13 {
			if err := os.WriteFile(fmt.Sprintf("%s/file_%d.go", d, j), []byte("package x\n"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i := range 500 {
		if err := os.WriteFile(fmt.Sprintf("%s/mod%02d/Makefile%d", root, i%15, i), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

func BenchmarkScanRemember(b *testing.B) {
	root := plant(b)
	r := DefaultRules()
	for b.Loop() {
		if _, err := Scan(context.Background(), root, r, Remember()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSettleRemember(b *testing.B) {
	root := plant(b)
	time.Sleep(2 * clockSlack)
	s := scanned(b, root, Remember())
	for b.Loop() {
		if _, err := s.Settle(context.Background(), b.TempDir()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	root := plant(b)
	r := DefaultRules()
	for b.Loop() {
		if _, err := Scan(context.Background(), root, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSettle(b *testing.B) {
	root := plant(b)
	s := scanned(b, root)
	for b.Loop() {
		if _, err := s.Settle(context.Background(), b.TempDir()); err != nil {
			b.Fatal(err)
		}
	}
}
