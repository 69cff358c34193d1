// Programs of the tests of package supervise: each does something that a
// program may do, and exits with 0 when the kernel did as it does unobserved.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%s: %d: %s: %s\n", __func__, __LINE__, #x, strerror(errno)); exit(1); } } while (0)

static char *yes[] = {"/bin/true", NULL};
static char *nothing[] = {NULL};

static void reap(pid_t pid, int want) {
	int status;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == want);
}

static void with_vfork(void) {
	for (int i = 0; i < 40; i++) {
		pid_t pid = vfork();
		if (pid == 0) {
			execve("/absent", yes, nothing);
			execve(yes[0], yes, nothing);
			_exit(9);
		}
		reap(pid, 0);
	}
}

static void with_spawn(void) {
	for (int i = 0; i < 40; i++) {
		pid_t pid;
		CHECK(posix_spawn(&pid, yes[0], NULL, NULL, yes, nothing) == 0);
		reap(pid, 0);
	}
}

static volatile int ticks;
static void tick(int s) { ticks++; }

static void alarms(int flags) {
	struct sigaction sa = {.sa_handler = tick, .sa_flags = flags};
	struct itimerval t = {{0, 300}, {0, 300}};
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	for (int i = 0; i < 3000; i++) {
		int fd = open("alarmed", O_CREAT | O_WRONLY, 0600);
		// Before a call is received a signal still interrupts it; see doc of Serve.
		while (fd < 0 && errno == EINTR && !(flags & SA_RESTART)) fd = open("alarmed", O_CREAT | O_WRONLY, 0600);
		CHECK(fd >= 0);
		close(fd);
	}
	CHECK(ticks > 0);
}
static void restart(void) { alarms(SA_RESTART); }
static void interrupt(void) { alarms(0); }

static void *worker(void *arg) {
	char name[32];
	sprintf(name, "thread-%ld", (long)arg);
	for (int i = 0; i < 100; i++) {
		int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);
		CHECK(fd >= 0);
		close(fd);
		CHECK(unlink(name) == 0);
	}
	return NULL;
}

static void threads(void) {
	pthread_t t[24];
	for (long i = 0; i < 24; i++) CHECK(pthread_create(&t[i], NULL, worker, (void *)i) == 0);
	for (int i = 0; i < 24; i++) CHECK(pthread_join(t[i], NULL) == 0);
}

// short_lived threads use up numbers.
static void *touch(void *arg) {
	int fd = open("touched", O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	close(fd);
	return NULL;
}
static void short_lived(void) {
	for (int i = 0; i < 400; i++) {
		pthread_t t;
		CHECK(pthread_create(&t, NULL, touch, NULL) == 0);
		CHECK(pthread_join(t, NULL) == 0);
	}
}

static void *executes(void *arg) {
	usleep(3000);
	execve(yes[0], yes, nothing);
	return NULL;
}
static void thread_executes(void) {
	pthread_t t;
	CHECK(pthread_create(&t, NULL, executes, NULL) == 0);
	for (;;) {
		int fd = open("/dev/null", O_WRONLY);
		if (fd >= 0) close(fd);
	}
}

static void killed(void) {
	for (int i = 0; i < 60; i++) {
		pid_t pid = fork();
		if (pid == 0)
			for (;;) {
				int fd = open("hunted", O_CREAT | O_WRONLY, 0600);
				if (fd >= 0) close(fd);
				execve("/absent", yes, nothing);
			}
		usleep(500 + i * 37);
		kill(pid, SIGKILL);
		reap(pid, SIGKILL);
	}
}

static void stopped(void) {
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 2000; i++) {
			int fd = open("stopped", O_CREAT | O_WRONLY, 0600);
			CHECK(fd >= 0);
			close(fd);
		}
		_exit(0);
	}
	int status;
	for (int i = 0; i < 30; i++) {
		kill(pid, SIGSTOP);
		CHECK(waitpid(pid, &status, WUNTRACED) == pid);
		if (!WIFSTOPPED(status)) { CHECK(status == 0); return; }
		kill(pid, SIGCONT);
		usleep(300);
	}
	reap(pid, 0);
}

static char racy[64] = "race-aaaa";
static volatile int over;
static void *flip(void *arg) {
	while (!over) { memcpy(racy, "race-aaaa", 10); memcpy(racy, "race-bbbbbbbb", 14); }
	return NULL;
}
static void race(void) {
	pthread_t t;
	CHECK(pthread_create(&t, NULL, flip, NULL) == 0);
	for (int i = 0; i < 2000; i++) {
		int fd = open(racy, O_CREAT | O_WRONLY, 0600);
		if (fd >= 0) close(fd);
	}
	over = 1;
	pthread_join(t, NULL);
}

static void edge(void) {
	long page = sysconf(_SC_PAGESIZE);
	char *m = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED);
	CHECK(munmap(m + 2 * page, page) == 0);
	char *name = m + 2 * page - 9;
	memcpy(name, "lastpage", 9);
	CHECK(open(name, O_CREAT | O_WRONLY, 0600) >= 0);
	name = m + page - 5;
	memcpy(name, "twopages", 9);
	CHECK(open(name, O_CREAT | O_WRONLY, 0600) >= 0);
	memset(m + 2 * page - 4, 'x', 4);
	CHECK(open(m + 2 * page - 4, O_CREAT | O_WRONLY, 0600) < 0 && errno == EFAULT);
	CHECK(mprotect(m, page, PROT_NONE) == 0);
	CHECK(open(m, O_CREAT | O_WRONLY, 0600) < 0 && errno == EFAULT);
	CHECK(open((char *)-1, O_CREAT | O_WRONLY, 0600) < 0 && errno == EFAULT);
	char *bad[] = {"/bin/true", (char *)8, NULL};
	CHECK(execve("/bin/true", bad, nothing) < 0 && errno == EFAULT);
	CHECK(execve("/bin/true", (char **)(m + 2 * page - 8), nothing) < 0);
}

static void undumpable(void) {
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	CHECK(open("undumpable", O_CREAT | O_WRONLY, 0600) >= 0);
}

static char stack[65536];
static int moves(void *arg) { return chdir("sub"); }
static void shared_directory(void) {
	int fd = open("before", O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	pid_t pid = clone(moves, stack + sizeof stack, CLONE_FS | SIGCHLD, NULL);
	CHECK(pid > 0);
	reap(pid, 0);
	CHECK(open("within", O_CREAT | O_WRONLY, 0600) >= 0);
	CHECK(access("../sub/within", F_OK) == 0);
}

static void orphan(void) {
	int p[2];
	CHECK(pipe(p) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			while (getppid() == getpid() - 1) usleep(1000);
			usleep(20000);
			CHECK(open("orphaned", O_CREAT | O_WRONLY, 0600) >= 0);
			CHECK(write(p[1], "x", 1) == 1);
			_exit(0);
		}
		_exit(0);
	}
	reap(pid, 0);
	char c;
	CHECK(read(p[0], &c, 1) == 1);
}

static void chain(void) {
	char *self = "/proc/self/exe";
	char *left = getenv("LEFT");
	int n = left ? atoi(left) : 30;
	if (n == 0) return;
	char word[32];
	sprintf(word, "LEFT=%d", n - 1);
	char *argv[] = {"behave", "chain", NULL}, *envp[] = {word, NULL};
	execve(self, argv, envp);
	CHECK(0);
}

// held makes changes that a human is asked about, with a timer that ticks
// meanwhile, and executes a program that he is asked about too.
static void held(int flags) {
	struct sigaction sa = {.sa_handler = tick, .sa_flags = flags};
	// Slow enough for the supervisor to have taken the call: before that a signal
	// interrupts it (seccomp(2), SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).
	struct itimerval t = {{0, 150000}, {0, 150000}};
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
	int fd = open("../out/held", O_CREAT | O_WRONLY | O_EXCL, 0600), began = ticks;
	CHECK(fd >= 0);
	CHECK(write(fd, "done", 4) == 4 && close(fd) == 0);
	CHECK(mkdir("../out/made", 0700) == 0);
	CHECK(began > 0); // the handler ran
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL); // the program has no handler
	execve(yes[0], yes, nothing);
	CHECK(0);
}
// ended waits for a human until somebody presses Ctrl-C.
static void ended(void) {
	struct sigaction sa = {.sa_handler = tick, .sa_flags = SA_RESTART};
	sigaction(SIGINT, &sa, NULL);
	CHECK(open("../out/ended", O_CREAT | O_WRONLY, 0600) == -1 && errno == EINTR && ticks == 1);
}

static void held_restart(void) { held(SA_RESTART); }
static void held_interrupt(void) { held(0); }

int main(int argc, char **argv) {
	struct { const char *name; void (*run)(void); } all[] = {
		{"vfork", with_vfork}, {"spawn", with_spawn}, {"restart", restart}, {"interrupt", interrupt}, {"threads", threads},
		{"short-lived", short_lived}, {"thread-executes", thread_executes}, {"killed", killed}, {"stopped", stopped}, {"race", race},
		{"edge", edge}, {"undumpable", undumpable}, {"shared-directory", shared_directory}, {"orphan", orphan}, {"chain", chain},
		{"ended", ended}, {"held-restart", held_restart}, {"held-interrupt", held_interrupt},
	};
	for (unsigned i = 0; argc > 1 && i < sizeof all / sizeof all[0]; i++)
		if (!strcmp(all[i].name, argv[1])) { all[i].run(); return 0; }
	return 2;
}
