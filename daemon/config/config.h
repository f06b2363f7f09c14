/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What zswapd was told to do, resolved to plain numbers.
 *
 * config_read() makes one from the system's files; its parts, in this order, are
 * config_init_defaults(), config_load() for each file, config_validate().  After that the structure
 * is read-only, and any thread may read it; until then it belongs to one thread.  It owns nothing,
 * so it can be copied and needs no deinit.
 *
 * Errors and warnings are logged here, as "FILE:LINE: [section] key: reason; way out".
 */
#ifndef ZSWAPD_DAEMON_CONFIG_CONFIG_H
#define ZSWAPD_DAEMON_CONFIG_CONFIG_H

#include "daemon/config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum config_transport {
	CONFIG_TRANSPORT_AUTO,
	CONFIG_TRANSPORT_UBLK,
	CONFIG_TRANSPORT_FUSE,
};

enum config_discard {
	CONFIG_DISCARD_OFF,
	CONFIG_DISCARD_PAGES,
};

enum config_poll {
	CONFIG_POLL_OFF,
	CONFIG_POLL_SPIN,
	CONFIG_POLL_HYBRID,
};

enum config_seccomp {
	CONFIG_SECCOMP_OFF,
	CONFIG_SECCOMP_LOG,
	CONFIG_SECCOMP_ON,
};

enum config_type {
	CONFIG_TYPE_NAME,
	CONFIG_TYPE_CHOICE,
	CONFIG_TYPE_BOOL,
	CONFIG_TYPE_INT,
	CONFIG_TYPE_SIZE,
	CONFIG_TYPE_PAGED,
	CONFIG_TYPE_PATH,
};

enum config_when {
	CONFIG_WHEN_START,
	CONFIG_WHEN_LIVE,
};

enum config_option_id {
#define X(section, key, ...) CONFIG_OPTION_##section##_##key,
	CONFIG_OPTIONS(X)
#undef X
	CONFIG_OPTION_COUNT
};

/* The origins that are no place in a file. */
#define CONFIG_ORIGIN_DEFAULT  "default"
#define CONFIG_ORIGIN_RUN_TIME "set at run time"

/* Holds "FILE:LINE", the file's name cut at its front if need be. */
#define CONFIG_ORIGIN_MAX 96

/* Holds what config_range() and config_describe() say. */
#define CONFIG_RANGE_MAX    112
#define CONFIG_DESCRIBE_MAX (CONFIG_TEXT_MAX + 100)

/* Holds an error, as it is logged. */
#define CONFIG_ERROR_MAX 384

/* Holds "reason; way out". */
#define CONFIG_REASON_MAX 160

/* Holds any value as text. */
#define CONFIG_TEXT_MAX (CONFIG_PATH_MAX + 1)

struct config {
	char device_name[CONFIG_NAME_MAX + 1];
	enum config_transport device_transport;
	uint64_t device_size; /* bytes, a multiple of 4096 */
	int device_queues;    /* 0: chosen by the transport */
	int device_watchdog;  /* seconds; 0: none */

	bool swap_enable;
	int swap_priority; /* -1: chosen by the kernel */
	enum config_discard swap_discard;

	uint64_t memory_limit;	 /* bytes */
	uint64_t memory_reserve; /* bytes; 0: the engine's choice */
	int memory_level;	 /* zstd's */

	char store_path[CONFIG_PATH_MAX + 1]; /* empty: no store */
	uint64_t store_size;		      /* bytes; 0: the whole device */
	enum config_poll store_poll;
	bool store_required;

	bool read_overlap;

	enum config_seccomp security_seccomp;

	uint64_t ram_bytes; /* what shares are shares of */
	/* Who set each value: "default", "FILE:LINE", or what control.c and live.c say. */
	char origin[CONFIG_OPTION_COUNT][CONFIG_ORIGIN_MAX];
};

struct config_option {
	const char *section;
	const char *key;
	enum config_type type;
	size_t offset; /* in struct config */
	int64_t min, max;
	const char *choices; /* words with | between them; NULL unless CHOICE */
	const char *def;
	bool live; /* can change while zswapd runs */
	const char *text;
};

/* Indexed by enum config_option_id; the options of a section stand together. */
extern const struct config_option config_options[CONFIG_OPTION_COUNT];

/* Where the configuration comes from; see config_read(). */
struct config_source {
	const char *file; /* this file alone; NULL: the system's files */
	const char *root; /* directory in which the system's directories lie; "" or NULL: / */
};

/* The environment variable that config_root() reads. */
#define CONFIG_ROOT_VARIABLE "ZSWAPD_ROOT"

/*
 * The root of a struct config_source as the environment has it, for tests and images: "" if the
 * variable is not set.  -EPERM: it is set, but this program has been given rights that its starter
 * has not (setuid, file capabilities), who must not choose its configuration; -EINVAL: no absolute
 * path.  Logged.
 */
int config_root(const char **ret_root);

/* Bytes of RAM of this machine; -errno of sysinfo(2). */
int config_ram_bytes(uint64_t *ret_bytes);

/* @ram_bytes resolves shares, here and in later config_load() calls; not 0. */
void config_init_defaults(struct config *c, uint64_t ram_bytes);

/*
 * The whole way: defaults, the files of @source (files.c has the rule), validation.  Says in the
 * log which files were read.  -EINVAL for wrong content, -EPERM for a file that others than root
 * and this user can write to, else -errno of finding, opening or reading a file; *ret is untouched
 * then.  @ret_error as below.
 */
int config_read(struct config *ret, uint64_t ram_bytes, const struct config_source *source,
		char *ret_error);

/*
 * Reads the INI file @path over what @c holds.  Unknown sections and keys are warned about and
 * skipped, of a key given twice the last counts.  On failure @c is as before: -EINVAL for wrong
 * content, else -errno of opening or reading; a file that does not exist is an error too.
 *
 * Here and below: an error has been logged, and is also put into @ret_error, which holds
 * CONFIG_ERROR_MAX bytes or is NULL.
 */
int config_load(struct config *c, const char *path, char *ret_error);

/* The same from an open stream, which stays open; @name stands for the file in messages. */
int config_parse(struct config *c, FILE *f, const char *name, char *ret_error);

/*
 * Checks every value once more, and those that depend on one another.  Whether the store's path is
 * a device, which decides whether it needs a size, is for the store to find out.  -EINVAL.
 */
int config_validate(const struct config *c, char *ret_error);

/* What it refuses, told in @error alone: nothing is logged. */
int config_check(const struct config *c, char error[static CONFIG_ERROR_MAX]);

/* The option known as "section.key", or NULL. */
const struct config_option *config_find(const char *name);

/*
 * Sets one option of @c from @text, as if it stood in a file, and its origin.  -EINVAL or -ERANGE:
 * @reason says what is wrong and what to write instead; @c is as before.  Logs nothing.
 */
int config_set(struct config *c, enum config_option_id id, const char *text, const char *origin,
	       char reason[static CONFIG_REASON_MAX]);

/*
 * Prints every resolved value as a file that config_load() reads back to the same values, with
 * text, units and origin as comments.  -EIO if @f took an error.
 */
int config_print(FILE *f, const struct config *c);

/* Logs every value that is not the default, resolved, with what it means and who set it. */
void config_log(const struct config *c);

/* What option @o may be, for people.  Returns @buf. */
const char *config_range(const struct config_option *o, char buf[static CONFIG_RANGE_MAX]);

/* config_value(), for a size with what it comes to: "67108864 (64.0 MiB, 0.8 % of RAM)". */
const char *config_describe(const struct config *c, enum config_option_id id,
			    char buf[static CONFIG_DESCRIBE_MAX]);

/* The value of option @id as the file would have it.  Returns @buf. */
const char *config_value(const struct config *c, enum config_option_id id,
			 char buf[static CONFIG_TEXT_MAX]);

#endif
