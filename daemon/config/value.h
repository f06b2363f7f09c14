/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One option's value: text to struct config and back.  Private to daemon/config.
 */
#ifndef ZSWAPD_DAEMON_CONFIG_VALUE_H
#define ZSWAPD_DAEMON_CONFIG_VALUE_H

#include "daemon/config/config.h"

/* Holds a word of the file, quoted in a message: cut, and without control characters. */
#define CONFIG_QUOTE_MAX 40

/* NULL: there is no such option. */
const struct config_option *config_find_key(const char *section, const char *key);

/*
 * Sets the field of option @o in @c from @text.  -EINVAL or -ERANGE: @reason says what is wrong and
 * what to write instead, and the field is as before.
 */
int config_value_set(struct config *c, const struct config_option *o, const char *text,
		     char reason[static CONFIG_REASON_MAX]);

/* Logs an error, and puts it into @ret_error unless that is NULL. */
__attribute__((format(printf, 2, 3))) void config_error(char *ret_error, const char *fmt, ...);

/* The value a default stands for: a size is moved into the option's range. */
void config_value_set_default(struct config *c, const struct config_option *o);

/*
 * Copies @text for a message or a comment: what could break a line becomes '?', and a text that
 * does not fit loses its front (@keep_end) or its end, marked by "...".  Returns @buf.
 */
const char *config_quote(char *buf, size_t size, const char *text, bool keep_end);

/*
 * Whether nobody but root and who runs this can write to the file.  -EPERM, told as above: what
 * stands in it decides what is overwritten, and by whom it is read later.
 */
int config_check_writers(int fd, const char *path, char *ret_error);

#endif
