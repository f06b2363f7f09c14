// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Captures the resident anonymous pages of one real program, or describes a file of such pages.
 *
 * The program is started with an empty environment in an empty directory.  As root it also gets
 * its own mount and host name, so that the directory is always /tmp and the host always "corpus":
 * what is captured then holds no path or name of the machine beyond what the program itself
 * carries.  The program counts as built when it prints the marker, or (--fed) when it has read all
 * of its standard input and sleeps.  Standard input is a pipe that stays open, so a program that
 * reads it cannot end before it is stopped.  Both waits end at the time limit.
 *
 * Then it is stopped and its pages are taken (take.c).  Transparent huge pages are off for it,
 * since the untouched rest of a huge page is not memory that anybody used.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/util.h"
#include "tests/corpus/stat.h"
#include "tests/corpus/take.h"

#define MAX_FILES 8

struct options {
	const char *out;
	const char *label;
	const char *marker;
	const char *stdin_path;
	const char *files[MAX_FILES];
	unsigned nr_files;
	bool fed;
	uint64_t max_pages;
	unsigned timeout_s;
	char **argv;
};

struct child {
	pid_t pid;
	int in;	 /* our end of its standard input */
	int out; /* our end of its standard output */
	char dir[64];
};

/* Finds @marker in a stream that arrives in pieces. */
struct matcher {
	const char *marker;
	char tail[256];
	size_t len;
};

static const struct option long_options[] = {
	{"out", required_argument, NULL, 'o'},
	{"label", required_argument, NULL, 'l'},
	{"marker", required_argument, NULL, 'm'},
	{"fed", no_argument, NULL, 'f'},
	{"stdin", required_argument, NULL, 'i'},
	{"file", required_argument, NULL, 'c'},
	{"pages", required_argument, NULL, 'n'},
	{"stat", required_argument, NULL, 's'},
	{"timeout", required_argument, NULL, 't'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static void usage(FILE *f)
{
	fputs("usage: corpus-capture --out FILE (--marker TEXT | --fed) [--stdin FILE] [--file FILE]...\n"
	      "                      [--pages N] [--timeout SECONDS] [--label NAME] -- PROGRAM [ARG]...\n"
	      "       corpus-capture --stat FILE\n"
	      "Appends the program's resident anonymous pages to FILE, 4096 bytes each.\n"
	      "  --marker TEXT  its memory is built when it prints TEXT\n"
	      "  --fed          its memory is built when it has read all of --stdin and sleeps\n"
	      "  --file FILE    copied into its working directory\n"
	      "  --pages N      at most N pages\n",
	      f);
}

/* --- the program ------------------------------------------------------------------------------ */

/* Copies @path into the current directory. */
static int copy_here(const char *path, int src)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	cleanup_fd int dst = open(base, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	char buf[16384];
	ssize_t n;

	if (dst < 0)
		return -errno;
	while ((n = read(src, buf, sizeof(buf))) > 0)
		if (write(dst, buf, (size_t)n) != n)
			return -EIO;
	return n < 0 ? -errno : 0;
}

/* A private /tmp and host name; -EPERM without the right to have them. */
static int enter_namespaces(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS) < 0)
		return -errno;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") < 0 ||
	    sethostname("corpus", 6) < 0 || setdomainname("corpus", 6) < 0)
		return -errno;
	return 0;
}

static _Noreturn void run_child(const struct options *o, const char *dir, int in, int out)
{
	static char *const no_environment[] = {NULL};
	int fds[MAX_FILES];
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (unsigned i = 0; i < o->nr_files; i++) {
		fds[i] = open(o->files[i], O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0) {
			fprintf(stderr, "corpus-capture: %s: %s\n", o->files[i], strerror(errno));
			_exit(126);
		}
	}
	r = dir[0] ? 0 : enter_namespaces();
	if (r < 0 || chdir(dir[0] ? dir : "/tmp") < 0) {
		fprintf(stderr, "corpus-capture: no empty directory to work in: %s\n",
			strerror(r < 0 ? -r : errno));
		_exit(126);
	}
	for (unsigned i = 0; i < o->nr_files; i++) {
		r = copy_here(o->files[i], fds[i]);
		if (r < 0) {
			fprintf(stderr, "corpus-capture: copy of %s: %s\n", o->files[i],
				strerror(-r));
			_exit(126);
		}
	}
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
		_exit(126);
	execve(o->argv[0], o->argv, no_environment);
	fprintf(stderr, "corpus-capture: %s: %s\n", o->argv[0], strerror(errno));
	_exit(127);
}

static int start(const struct options *o, struct child *c)
{
	int in[2], out[2];

	if (geteuid() != 0) {
		strcpy(c->dir, "/tmp/corpus-XXXXXX");
		if (!mkdtemp(c->dir))
			return -errno;
	}
	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(out, O_CLOEXEC) < 0) {
		close_fd(in[0]);
		close_fd(in[1]);
		return -errno;
	}
	c->pid = fork();
	if (c->pid == 0)
		run_child(o, c->dir, in[0], out[1]);
	close_fd(in[0]);
	close_fd(out[1]);
	c->in = in[1];
	c->out = out[0];
	return c->pid < 0 ? -errno : 0;
}

static void stop(const struct options *o, struct child *c)
{
	char path[PATH_MAX];

	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	close_fd(c->in);
	close_fd(c->out);
	if (!c->dir[0])
		return;
	for (unsigned i = 0; i < o->nr_files; i++) {
		const char *base = strrchr(o->files[i], '/');

		snprintf(path, sizeof(path), "%s/%s", c->dir, base ? base + 1 : o->files[i]);
		unlink(path);
	}
	if (rmdir(c->dir) < 0)
		fprintf(stderr, "corpus-capture: %s stays, the program left files there\n", c->dir);
}

/* --- waiting until its memory is built -------------------------------------------------------- */

static bool match(struct matcher *m, const char *buf, size_t len)
{
	size_t want = strlen(m->marker);

	for (size_t i = 0; i < len; i++) {
		if (m->len == want) {
			memmove(m->tail, m->tail + 1, want - 1);
			m->len--;
		}
		m->tail[m->len++] = buf[i];
		if (m->len == want && !memcmp(m->tail, m->marker, want))
			return true;
	}
	return false;
}

/* True if the program has emptied its standard input and waits for more. */
static bool is_fed(const struct child *c)
{
	char path[64], buf[512];
	const char *state;
	int left;
	ssize_t n;

	if (ioctl(c->in, FIONREAD, &left) < 0 || left)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", c->pid);
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	state = strrchr(buf, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

/* Writes the next piece of the file into the pipe; false when all is written. */
static bool feed(int file, int pipe_fd)
{
	char buf[4096];
	ssize_t n = read(file, buf, sizeof(buf));

	if (n <= 0)
		return false;
	/* The pipe is writable for PIPE_BUF bytes at least, which is what is written. */
	return write(pipe_fd, buf, (size_t)n) == n;
}

/* 0 once the memory is built, -ETIMEDOUT, or -ECHILD if the program ended before that. */
static int wait_built(const struct options *o, struct child *c)
{
	cleanup_fd int file = o->stdin_path ? open(o->stdin_path, O_RDONLY | O_CLOEXEC) : -1;
	uint64_t deadline = now_ns() + o->timeout_s * UINT64_C(1000000000);
	struct matcher m = {.marker = o->marker};
	bool feeding = file >= 0;
	unsigned quiet = 0;
	char buf[65536];

	if (o->stdin_path && file < 0)
		return -errno;
	while (now_ns() < deadline) {
		struct pollfd p[2] = {{.fd = c->out, .events = POLLIN},
				      {.fd = feeding ? c->in : -1, .events = POLLOUT}};

		if (poll(p, 2, 10) < 0)
			return -errno;
		if (p[0].revents) {
			ssize_t n = read(c->out, buf, sizeof(buf));

			if (n <= 0)
				return -ECHILD;
			if (o->marker && match(&m, buf, (size_t)n))
				return 0;
		}
		if (feeding && p[1].revents)
			feeding = feed(file, c->in);
		if (o->fed && !feeding && !p[0].revents) {
			/* Five looks in a row, so that a short sleep elsewhere is not taken for it.
			 */
			quiet = is_fed(c) ? quiet + 1 : 0;
			if (quiet == 5)
				return 0;
		}
	}
	return -ETIMEDOUT;
}

static int capture(const struct options *o)
{
	struct child c = {.in = -1, .out = -1};
	const char *step = "start";
	int status, r;

	r = start(o, &c);
	if (r == 0) {
		step = "wait for its memory to be built";
		r = wait_built(o, &c);
	}
	if (r == 0) {
		step = "stop";
		r = kill(c.pid, SIGSTOP) < 0 || waitpid(c.pid, &status, WUNTRACED) < 0 ? -errno : 0;
		if (r == 0 && !WIFSTOPPED(status)) {
			c.pid = 0; /* reaped */
			r = -ECHILD;
		}
	}
	if (r == 0) {
		step = "read its pages";
		r = take_program(c.pid, o->out, o->label ? o->label : o->argv[0], o->max_pages);
	}
	stop(o, &c);
	if (r < 0)
		fprintf(stderr, "corpus-capture: %s: could not %s: %s\n", o->argv[0], step,
			r == -ECHILD ? "it ended too early" : strerror(-r));
	return r < 0 ? 1 : 0;
}

/* 0, or 2 for wrong usage; *ret_stat is set when --stat was given. */
static int parse(int argc, char **argv, struct options *o, const char **ret_stat)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (opt) {
		case 'o':
			o->out = optarg;
			break;
		case 'l':
			o->label = optarg;
			break;
		case 'm':
			o->marker = optarg;
			break;
		case 'f':
			o->fed = true;
			break;
		case 'i':
			o->stdin_path = optarg;
			break;
		case 'c':
			if (o->nr_files == MAX_FILES)
				return 2;
			o->files[o->nr_files++] = optarg;
			break;
		case 'n':
			o->max_pages = strtoull(optarg, NULL, 10);
			break;
		case 't':
			o->timeout_s = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			*ret_stat = optarg;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			return 2;
		}
	}
	o->argv = argv + optind;
	if (*ret_stat)
		return optind == argc ? 0 : 2;
	if (!o->out || optind == argc || !o->max_pages || !o->timeout_s ||
	    (o->marker != NULL) == o->fed)
		return 2;
	return o->marker && (!*o->marker || strlen(o->marker) >= 256) ? 2 : 0;
}

int main(int argc, char **argv)
{
	struct options o = {.max_pages = UINT64_MAX, .timeout_s = 30};
	const char *stat_path = NULL;

	if (parse(argc, argv, &o, &stat_path)) {
		usage(stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	return stat_path ? corpus_stat(stat_path) : capture(&o);
}
