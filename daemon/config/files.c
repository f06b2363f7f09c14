// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which files make the configuration.
 *
 *	directory                 zswapd.conf        zswapd.conf.d/NAME.conf
 *	/run/zswapd               the first that     of files of one name,
 *	/etc/zswapd               is there           the one in the first
 *	/usr/local/lib/zswapd     is read            directory is read
 *	/usr/lib/zswapd
 *
 * The main file is read first, then the drop-ins in the order of their names, wherever they lie;
 * what is read later wins.  A file that is a link to /dev/null takes part in this choice and is
 * then not read: so it masks the files of its name further down.  Names that begin with a dot or
 * end otherwise are passed over.
 *
 * A file that is there and can't be read ends the reading: half a configuration is another one.
 * Only regular files are read, since to open a pipe is to wait for its writer.
 */
#include "common/log.h"
#include "common/util.h"
#include "daemon/config/value.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* By priority. */
static const char *const directories[] = {"/run/zswapd", "/etc/zswapd", "/usr/local/lib/zswapd",
					  "/usr/lib/zswapd"};

struct dropin {
	char *path;
	const char *name; /* within path */
};

struct dropins {
	struct dropin *list;
	size_t n;
};

int config_root(const char **ret_root)
{
	const char *root = getenv(CONFIG_ROOT_VARIABLE);

	if (!root || !*root) {
		*ret_root = "";
		return 0;
	}
	/* Whoever starts a program that has more rights than he must not choose what it does. */
	if (!secure_getenv(CONFIG_ROOT_VARIABLE)) {
		log_err(CONFIG_ROOT_VARIABLE " is set for a program with the rights of another; "
					     "unset it");
		return -EPERM;
	}
	if (*root != '/') {
		log_err(CONFIG_ROOT_VARIABLE
			": '%s' is no absolute path; write one that starts with /",
			root);
		return -EINVAL;
	}
	*ret_root = root;
	return 0;
}

static int no_memory(char *error)
{
	config_error(error, "the configuration cannot be read: out of memory; free some");
	return -ENOMEM;
}

static int unreadable(const char *path, int r, char *error)
{
	char quoted[CONFIG_ORIGIN_MAX];

	config_error(error, "%s: cannot be read: %s; correct or remove it",
		     config_quote(quoted, sizeof(quoted), path, true), strerror(-r));
	return r;
}

int config_check_writers(int fd, const char *path, char *error)
{
	char quoted[CONFIG_ORIGIN_MAX];
	mode_t writers = S_IWOTH;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return unreadable(path, -errno, error);
	if (!S_ISREG(st.st_mode)) /* what it is instead is found by who reads it */
		return 0;
	config_quote(quoted, sizeof(quoted), path, true);
	if (st.st_uid != 0 && st.st_uid != geteuid()) {
		config_error(error,
			     "%s: belongs to user %u, who must not say what this program does; "
			     "chown root it",
			     quoted, st.st_uid);
		return -EPERM;
	}
	if (st.st_gid != 0 && st.st_gid != getegid())
		writers |= S_IWGRP;
	if (st.st_mode & writers) {
		config_error(error,
			     "%s: others can write to it (mode %04o), who must not say what this "
			     "program does; chmod go-w it",
			     quoted, st.st_mode & 07777);
		return -EPERM;
	}
	return 0;
}

/* *ret_f is left alone if the file is /dev/null. */
static int open_file(const char *path, FILE **ret_f, char *error)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char quoted[CONFIG_ORIGIN_MAX];
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return unreadable(path, -errno, error);
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return 0;
	if (!S_ISREG(st.st_mode)) {
		config_error(error, "%s: is no regular file; remove it",
			     config_quote(quoted, sizeof(quoted), path, true));
		return -EINVAL;
	}
	r = config_check_writers(fd, path, error);
	if (r < 0)
		return r;
	*ret_f = fdopen(fd, "r");
	if (!*ret_f)
		return no_memory(error);
	fd = -1;
	return 0;
}

/* 1: read; 0: masked. */
static int load_file(struct config *c, const char *path, char *error)
{
	char quoted[CONFIG_ORIGIN_MAX];
	FILE *f = NULL;
	int r;

	r = open_file(path, &f, error);
	if (r < 0)
		return r;
	config_quote(quoted, sizeof(quoted), path, true);
	if (!f) {
		log_debug("configuration: %s is masked", quoted);
		return 0;
	}
	r = config_parse(c, f, path, error);
	fclose(f);
	if (r < 0)
		return r;
	log_info("configuration: %s", quoted);
	return 1;
}

/* As load_file(); 0 also if there is none. */
static int load_main(struct config *c, const char *root, char *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		cleanup_free char *path = NULL;
		struct stat st;

		if (asprintf(&path, "%s%s/zswapd.conf", root, directories[i]) < 0) {
			path = NULL;
			return no_memory(error);
		}
		/* A link that leads nowhere is an error of its own, not a missing file. */
		if (lstat(path, &st) == 0)
			return load_file(c, path, error);
		if (errno != ENOENT && errno != ENOTDIR)
			return unreadable(path, -errno, error);
	}
	return 0;
}

static bool is_dropin(const char *name)
{
	size_t len = strlen(name);

	return *name != '.' && len > 5 && !strcmp(name + len - 5, ".conf");
}

static bool has_dropin(const struct dropins *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++)
		if (!strcmp(d->list[i].name, name))
			return true;
	return false;
}

static int add_dropin(struct dropins *d, const char *dir, const char *name)
{
	struct dropin *list = reallocarray(d->list, d->n + 1, sizeof(*list));
	char *path;

	if (!list)
		return -ENOMEM;
	d->list = list;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	list[d->n++] = (struct dropin){.path = path, .name = path + strlen(dir) + 1};
	return 0;
}

/* Adds the files of @dir whose names are new. */
static int find_in(struct dropins *d, const char *dir, char *error)
{
	struct dirent *e;
	int r = 0;
	DIR *s;

	s = opendir(dir);
	if (!s)
		return errno == ENOENT || errno == ENOTDIR ? 0 : unreadable(dir, -errno, error);
	while (r == 0 && (errno = 0, e = readdir(s)))
		if (is_dropin(e->d_name) && !has_dropin(d, e->d_name))
			r = add_dropin(d, dir, e->d_name);
	if (r < 0)
		no_memory(error);
	else if (errno)
		r = unreadable(dir, -errno, error);
	closedir(s);
	return r;
}

static int compare_dropins(const void *a, const void *b)
{
	return strcmp(((const struct dropin *)a)->name, ((const struct dropin *)b)->name);
}

static int find_dropins(struct dropins *d, const char *root, char *error)
{
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		cleanup_free char *dir = NULL;
		int r;

		if (asprintf(&dir, "%s%s/zswapd.conf.d", root, directories[i]) < 0) {
			dir = NULL;
			return no_memory(error);
		}
		r = find_in(d, dir, error);
		if (r < 0)
			return r;
	}
	if (d->n)
		qsort(d->list, d->n, sizeof(*d->list), compare_dropins);
	return 0;
}

/* How many files were read. */
static int load_dropins(struct config *c, const char *root, char *error)
{
	struct dropins d = {0};
	int r, n = 0;

	r = find_dropins(&d, root, error);
	for (size_t i = 0; r >= 0 && i < d.n; i++) {
		r = load_file(c, d.list[i].path, error);
		n += r > 0;
	}
	for (size_t i = 0; i < d.n; i++)
		free(d.list[i].path);
	free(d.list);
	return r < 0 ? r : n;
}

static int load_system(struct config *c, const char *root, char *error)
{
	int n, r;

	n = load_main(c, root, error);
	if (n < 0)
		return n;
	r = load_dropins(c, root, error);
	if (r < 0)
		return r;
	if (n + r == 0)
		log_notice(
			"no configuration file: going on with the defaults (see --print-config)");
	return 0;
}

int config_read(struct config *ret, uint64_t ram_bytes, const struct config_source *source,
		char *ret_error)
{
	struct config c;
	int r;

	config_init_defaults(&c, ram_bytes);
	if (source->file)
		r = config_load(&c, source->file, ret_error);
	else
		r = load_system(&c, source->root ? source->root : "", ret_error);
	if (r < 0)
		return r;
	r = config_validate(&c, ret_error);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}
