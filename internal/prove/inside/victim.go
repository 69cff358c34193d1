//go:build linux

package inside

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"

	"golang.org/x/sys/unix"
)

// Victim is the process that probes target: it is outside, keeps the token that
// it reads from its input in memory and environment, counts SIGWINCH, and prints
// the count when its input ends.
func Victim() {
	token, _ := bufio.NewReader(os.Stdin).ReadBytes('\n')
	ch := make(chan os.Signal, 64)
	signal.Notify(ch, unix.SIGWINCH)
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	signal.Stop(ch)
	fmt.Println(len(ch))
	runtime.KeepAlive(token)
}
