//go:build linux

package supervise

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// insideDo does one thing in a view and returns the result.
func insideDo(words []string) string {
	if show := insideShow[words[0]]; show != nil {
		return show(words[1:])
	}
	do := insideVerbs[words[0]]
	if do == nil {
		return "no such verb"
	}
	err := do(words[1:])
	if p, ok := err.(*os.PathError); ok {
		err = p.Err
	}
	if errno, ok := err.(unix.Errno); ok {
		return unix.ErrnoName(errno)
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func closing(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

var insideVerbs = map[string]func([]string) error{
	"stat": func(a []string) error { _, err := os.Stat(a[0]); return err },
	"thread": func(a []string) error {
		errs := make(chan error)
		go func() { _, err := os.Stat(a[0]); errs <- err }()
		return <-errs
	},
	"open":   func(a []string) error { return closing(unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)) },
	"write":  func(a []string) error { return closing(unix.Open(a[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)) },
	"create": func(a []string) error { return closing(unix.Open(a[0], unix.O_CREAT|unix.O_WRONLY, 0o644)) },
	"relative": func(a []string) error {
		if err := unix.Chdir("/home/agent"); err != nil {
			return err
		}
		return closing(unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0))
	},
	"beneath": func(a []string) error {
		dir, err := unix.Open("/usr", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		return closing(unix.Openat(dir, a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0))
	},
	"link": func(a []string) error {
		link := a[1] + "/holdfast-tripwire-link-" + insideUID
		os.Remove(link)
		if err := unix.Symlink("/home/w", link); err != nil {
			return err
		}
		defer os.Remove(link)
		return closing(unix.Open(link+"/.netrc", unix.O_RDONLY|unix.O_CLOEXEC, 0))
	},
	"landlock": func(a []string) error {
		errs := make(chan error)
		go func() {
			runtime.LockOSThread() // it is restricted for good
			if err := landlockTo(a[0]); err != nil {
				errs <- err
				return
			}
			errs <- closing(unix.Open(a[1], unix.O_RDONLY|unix.O_CLOEXEC, 0))
		}()
		return <-errs
	},
	"mkdir":  func(a []string) error { return unix.Mkdir(a[0], 0o755) },
	"rename": func(a []string) error { return unix.Rename(a[0], a[1]) },
	"access": func(a []string) error { return unix.Access(a[0], unix.R_OK) },
	"path":   func(a []string) error { return closing(unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)) },
	"magic": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return closing(unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0))
	},
	"chdir":  func(a []string) error { return unix.Chdir(a[0]) },
	"exec":   func(a []string) error { return unix.Exec(a[0], a[:1], nil) },
	"script": func([]string) error { return unix.Exec("/home/agent/script", []string{"script"}, nil) },
	"xattr": func(a []string) error {
		_, err := unix.Getxattr(a[0], "user.x", make([]byte, 8))
		return err
	},
	"statfs": func(a []string) error { return unix.Statfs(a[0], &unix.Statfs_t{}) },
	"ioctl": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		return err
	},
	"connect": func(a []string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Connect(fd, &unix.SockaddrUnix{Name: a[0]})
	},
}

// insideShow are the verbs that have something to say.
var insideShow = map[string]func([]string) string{
	"cat": func(a []string) string {
		raw, err := os.ReadFile(a[0])
		if err != nil {
			return err.Error()
		}
		return strconv.Itoa(len(raw))
	},
	"list": func(a []string) string {
		var names []string
		entries, err := os.ReadDir(a[0])
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return fmt.Sprint(names, err)
	},
	"readlink": func(a []string) string { s, err := os.Readlink(a[0]); return fmt.Sprint(s, err) },
	"seek": func(a []string) string {
		f, err := os.Open(a[0])
		if err != nil {
			return err.Error()
		}
		defer f.Close()
		n, err := f.Seek(0, 2)
		if err != nil {
			return err.Error()
		}
		return strconv.FormatInt(n, 10)
	},
	"mmap": func(a []string) string {
		data, err := mapped(a[0])
		if err != nil {
			return err.Error()
		}
		defer unix.Munmap(data)
		return string(data[:6])
	},
	"bench": func(a []string) string {
		best := time.Hour
		for range 15 {
			start := time.Now()
			for range 10000 {
				if err := closing(unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)); err != nil {
					return err.Error()
				}
			}
			best = min(best, time.Since(start)/10000)
		}
		return best.String()
	},
	"misses": func(a []string) string {
		start := time.Now()
		n, _ := strconv.Atoi(a[1])
		for i := range n {
			unix.Access(a[0]+strconv.Itoa(i), 0)
		}
		return (time.Since(start) / time.Duration(n)).String()
	},
	"same": func(a []string) string {
		n, _ := strconv.Atoi(a[1])
		for range n {
			unix.Access(a[0], 0)
		}
		return "ok"
	},
	"parallel": func(a []string) string {
		var all sync.WaitGroup
		n, _ := strconv.Atoi(a[1])
		for i := range n {
			all.Go(func() {
				for j := range 100 {
					unix.Access(fmt.Sprintf("%s/%d/%d", a[0], i, j), 0)
				}
			})
		}
		all.Wait()
		return "ok"
	},
	"selfish": func(a []string) string {
		threads, _ := strconv.Atoi(a[1])
		return selfish(a[0], threads)
	},
}

func mapped(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
}

// selfish looks up, from several threads, a path in a mapped file of the root, while
// other threads make the kernel forget the page.
func selfish(path string, threads int) string {
	data, err := mapped(path)
	if err != nil {
		return err.Error()
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err.Error()
	}
	var all sync.WaitGroup
	end := time.Now().Add(2 * time.Second)
	var looked int
	for i := range threads {
		all.Go(func() {
			for time.Now().Before(end) {
				if i%2 == 0 {
					unix.Madvise(data, unix.MADV_DONTNEED)
					unix.Fadvise(fd, 0, 4096, unix.FADV_DONTNEED)
					continue
				}
				lookAt(data)
				if i == 1 {
					looked++
				}
			}
		})
	}
	all.Wait()
	return strconv.Itoa(looked) + " by one thread"
}
