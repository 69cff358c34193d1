package command

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Interruptible is a context that ends when the user wants an end (SIGINT, SIGTERM).
func Interruptible(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
}

// UntilHangup is Interruptible for what has to be taken away at the end, also
// when the terminal goes away.
func UntilHangup(c *cobra.Command) (context.Context, context.CancelFunc) {
	ctx, stop := Interruptible(c)
	if signal.Ignored(syscall.SIGHUP) { // by nohup(1), whose user wants no end
		return ctx, stop
	}
	ctx, hangup := signal.NotifyContext(ctx, syscall.SIGHUP)
	return ctx, func() { hangup(); stop() }
}
