package realtest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"
)

// TestMain is also the client of streams: a Go program, as usually built, that
// runs inside.
func TestMain(m *testing.M) {
	if os.Getenv("REALTEST_CLIENT") == "" {
		os.Exit(m.Run())
	}
	for _, speak := range []func() error{trailers, oldTrailers, conversation} {
		if err := speak(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

const streams = "https://" + streamHost

func trailers() error { return readTrailers(http.DefaultClient) }

func oldTrailers() error {
	only := new(http.Protocols)
	only.SetHTTP1(true)
	return readTrailers(&http.Client{Transport: &http.Transport{Protocols: only, TLSClientConfig: &tls.Config{}}})
}

func readTrailers(client *http.Client) error {
	answer, err := client.Get(streams + "/trailers")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		return err
	}
	fmt.Println(answer.Proto, "trailers", answer.Trailer.Get("X-Sum"))
	return nil
}

// conversation alternately sends and receives on one stream, as a bidirectional
// gRPC call does.
func conversation() error {
	body, say := io.Pipe()
	call, err := http.NewRequest(http.MethodPost, streams+"/echo.Service/Talk", body)
	if err != nil {
		return err
	}
	call.Header.Set("Te", "trailers")
	call.Header.Set("Content-Type", "application/grpc")
	answer, err := (&http.Client{Timeout: time.Minute}).Do(call)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	times := 0
	for ; times < 20; times++ {
		word := fmt.Sprint("word ", times)
		if err := writeMessage(say, []byte(word)); err != nil {
			return err
		}
		heard, err := readMessage(answer.Body)
		if err != nil || string(heard) != "echo "+word {
			return fmt.Errorf("said %q, heard %q: %v", word, heard, err)
		}
	}
	say.Close()
	if _, err := io.ReadAll(answer.Body); err != nil {
		return err
	}
	fmt.Printf("talked %d times, status %s %s\n", times, answer.Trailer.Get("Grpc-Status"), answer.Trailer.Get("Grpc-Message"))
	return nil
}
