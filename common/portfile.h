/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DIR/NAME.port: the netlink port on which the daemon of device NAME answers, one decimal number
 * and a newline.  Mode 0644 in a directory of mode 0755, so everybody reads it and only root
 * writes it.  It is replaced by rename, so a reader sees the old or the new number, never a part.
 * A daemon that was killed leaves its file; nobody answers on that port then.
 */
#ifndef ZSWAPD_COMMON_PORTFILE_H
#define ZSWAPD_COMMON_PORTFILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/nlproto.h"

#define PORTFILE_DIR "/run/zswapd"

/* Creates @dir (not its parents) where it is missing.  Negative errno on failure. */
int portfile_write(const char *dir, const char *name, uint32_t port);

/* -ENOENT without a file, -EINVAL if it holds no port. */
int portfile_read(const char *dir, const char *name, uint32_t *ret_port);

/* Removes the file unless it names another port than @port: then a successor has written it. */
void portfile_remove(const char *dir, const char *name, uint32_t port);

/*
 * Puts the device names that have a file in @dir into @names, at most @max, in no order.  Returns
 * how many there are, which may be more than @max; 0 if the directory cannot be read.
 */
size_t portfile_list(const char *dir, char (*names)[NLPROTO_NAME_MAX], size_t max);

#endif
