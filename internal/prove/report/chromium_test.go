package report

import (
	"bytes"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/testenv"
)

// browser starts Chromium on pages of a directory, and counts its network
// requests: all addresses except files go to a proxy of the test.
type browser struct {
	t     *testing.T
	dir   string
	proxy string

	mu    sync.Mutex
	asked []string // host and path of each request
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	testenv.Need(t, testenv.Chromium, nil)
	b := &browser{t: t, dir: t.TempDir()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		b.asked = append(b.asked, r.Host+r.URL.Path)
		b.mu.Unlock()
		http.NotFound(w, r)
	}))
	t.Cleanup(server.Close)
	b.proxy = server.Listener.Addr().(*net.TCPAddr).String()
	return b
}

// run opens a page with some flags and returns Chromium's output and complaints.
func (b *browser) run(page string, flags ...string) (stdout, stderr string) {
	b.t.Helper()
	profile, err := os.MkdirTemp(b.dir, "profile-")
	if err != nil {
		b.t.Fatal(err)
	}
	// Chromium's own sandbox works neither as root nor in a container, so it runs
	// without; the page is ours.
	args := append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-features=OptimizationHints,MediaRouter,Translate",
		"--enable-logging=stderr", "--user-data-dir=" + profile, "--proxy-server=http://" + b.proxy, "--proxy-bypass-list=<-loopback>"}, flags...)
	ctx, cancel := context.WithTimeout(b.t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "chromium", append(args, "file://"+filepath.Join(b.dir, page))...)
	cmd.Env = append(os.Environ(), "HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile, "DBUS_SESSION_BUS_ADDRESS=/dev/null")
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		b.t.Fatalf("chromium: %v\n%.2000s", err, errs.String())
	}
	return out.String(), errs.String()
}

func (b *browser) write(name string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// requests are the network requests for names in example.org, the only domain
// that the pages name.
func (b *browser) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.asked), func(s string) bool { return !strings.Contains(s, "example.org") })
}

// keep saves a file as an artefact, if ARTEFACTS is set.
func (b *browser) keep(name string) {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	dir := os.Getenv("ARTEFACTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// beacon is a text that would make network requests if it were treated as HTML.
const beacon = `<img src="http://beacon.example.org/image"><script>fetch('http://beacon.example.org/script')</script>` +
	`<link rel=stylesheet href="http://beacon.example.org/style"><style>@import url(http://beacon.example.org/import)</style>` +
	`<iframe src="http://beacon.example.org/frame"></iframe>`

func TestPageInChromium(t *testing.T) {
	b := newBrowser(t)
	r := catalogued(t)
	r.Rows = append(r.Rows, Row{ID: "XSS-001", Class: "zzz.hostile", Title: beacon, Observed: beacon, Reason: beacon, Verdict: Escaped, Refs: []string{"http://beacon.example.org/ref"}, Effects: []string{beacon}})
	b.write("run.html", htmlOf(t, r))
	dom, log := b.run("run.html", "--dump-dom")
	for _, row := range r.Rows {
		if !strings.Contains(dom, fmt.Sprintf(`id="row-%s"`, row.ID)) {
			t.Errorf("the page has no row %s", row.ID)
		}
	}
	for _, element := range []string{"<img", "<iframe", "<script", "<link"} {
		if strings.Contains(dom, element) {
			t.Errorf("the page has an element %s", element)
		}
	}
	if strings.Contains(log, "Content Security Policy") {
		t.Errorf("the page breaks its own policy:\n%.2000s", log)
	}
	if got := b.requests(); len(got) > 0 {
		t.Errorf("the page asked the network for %v", got)
	}
}

// TestTheBrowserWouldBeHeard is the control of the test above: as HTML the same
// texts do make requests, and none with the policy above them.
func TestTheBrowserWouldBeHeard(t *testing.T) {
	b := newBrowser(t)
	b.write("open.html", []byte("<!doctype html><title>t</title>"+beacon))
	b.run("open.html", "--dump-dom")
	heard := len(b.requests())
	if heard == 0 {
		t.Fatal("a page that asks the network is not heard")
	}
	b.write("closed.html", fmt.Appendf(nil, `<!doctype html><meta http-equiv="Content-Security-Policy" content="%s"><title>t</title>%s`, contentPolicy, beacon))
	_, log := b.run("closed.html", "--dump-dom")
	if got := b.requests(); len(got) > heard {
		t.Errorf("below the policy the page asked for %v", got[heard:])
	}
	if !strings.Contains(log, "Content Security Policy") {
		t.Errorf("the browser does not say that the policy refused anything:\n%.1000s", log)
	}
}

// TestPictures takes pictures of the pages for people to look at.
func TestPictures(t *testing.T) {
	b := newBrowser(t)
	b.write("run.html", htmlOf(t, catalogued(t)))
	b.write("matrix.html", matrixHTML(t, several()...))
	sizes := map[string]int{}
	for name, shot := range map[string][]string{
		"run-light.png":    {"run.html", "--window-size=1280,3600"},
		"run-dark.png":     {"run.html", "--window-size=1280,3600", "--blink-settings=preferredColorScheme=0"},
		"run-narrow.png":   {"run.html", "--window-size=400,3600"},
		"matrix-light.png": {"matrix.html", "--window-size=1280,3600"},
	} {
		b.run(shot[0], append(shot[1:], "--screenshot="+filepath.Join(b.dir, name))...)
		b.keep(name)
		colours, corner, width := picture(t, filepath.Join(b.dir, name))
		sizes[name] = width
		scheme := "light"
		if strings.Contains(name, "dark") {
			scheme = "dark"
		}
		if want := schemes(t)[scheme]["page"]; colours < 20 || corner != want {
			t.Errorf("%s has %d colours, and %s in the corner, not %s: nothing is drawn, or without the style", name, colours, corner, want)
		}
	}
	if sizes["run-light.png"] != 1280 || sizes["run-narrow.png"] != 400 {
		t.Errorf("the pictures are as wide as %v", sizes)
	}
	b.run("run.html", "--no-pdf-header-footer", "--print-to-pdf="+filepath.Join(b.dir, "run.pdf"))
	b.keep("run.pdf")
	pdf, err := os.ReadFile(filepath.Join(b.dir, "run.pdf"))
	if err != nil {
		t.Fatal(err)
	}
	if pages := bytes.Count(pdf, []byte("/Type /Page\n")); !bytes.HasPrefix(pdf, []byte("%PDF-")) || pages < 5 || pages > 30 {
		t.Errorf("printed, the page has %d sheets", pages)
	}
}

// picture counts the colours of a picture, and returns the colour of its corner
// and its width.
func picture(t *testing.T, path string) (colours int, corner string, width int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.Color]bool{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y += 3 {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x += 3 {
			seen[img.At(x, y)] = true
		}
	}
	r, g, bl, _ := img.At(img.Bounds().Min.X+4, img.Bounds().Min.Y+4).RGBA()
	return len(seen), fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, bl>>8), img.Bounds().Dx()
}
