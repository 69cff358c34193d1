package realtest

import (
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

func pythonVenv(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Python)
	p.write(map[string]string{"app.py": "import sys, sqlite3, ssl, json\nprint('prefix', sys.prefix != sys.base_prefix)\n"})
	contains(t, p.inside(`python3 -m venv env; env/bin/python app.py; env/bin/python -m pip --version; . env/bin/activate; python -c 'print("active")'`), "prefix True", "pip ", "active")
	contains(t, p.inside(`env/bin/python app.py`), "prefix True")
}

func pythonMultiprocessing(t *testing.T, root string) {
	t.Parallel()
	p := newFixture(t, root, testenv.Python)
	p.write(map[string]string{"app.py": `import concurrent.futures, multiprocessing as m, subprocess, tempfile, threading

def square(n):
    return n * n

if __name__ == "__main__":
    for kind in ("fork", "spawn", "forkserver"):
        with m.get_context(kind).Pool(4) as pool:
            print(kind, sum(pool.map(square, range(100))))
    q = m.Queue()
    child = m.Process(target=q.put, args=("queued",))
    child.start()
    print(q.get())
    child.join()
    shared = m.shared_memory.SharedMemory(create=True, size=1 << 20) if hasattr(m, "shared_memory") else None
    if shared:
        shared.close(); shared.unlink()
    with m.Manager() as manager:
        d = manager.dict(a=1)
        print("managed", d["a"])
    ts = [threading.Thread(target=square, args=(i,)) for i in range(200)]
    [t.start() for t in ts]; [t.join() for t in ts]
    with concurrent.futures.ProcessPoolExecutor(4) as pool:
        print("pool", sum(pool.map(square, range(10))))
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"x")
    print(subprocess.run(["sh", "-c", "echo child"], capture_output=True, text=True).stdout.strip())
`})
	contains(t, p.inside(`python3 app.py`), "fork 328350", "spawn 328350", "forkserver 328350", "queued", "managed 1", "pool 285", "child")
}
