/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings of others as JSON. */
#ifndef ZSWAPD_CTL_JSON_H
#define ZSWAPD_CTL_JSON_H

#include <stdio.h>

#include "ctl/reply.h"

/*
 * With quotes, and ASCII only.  UTF-8 is told as the characters it means, a byte that is none as
 * U+FFFD, so that any text makes valid JSON.
 */
void json_string(FILE *out, const char *s);

/* null if it is not known. */
void json_text(FILE *out, const struct ctl_text *t);
void json_num(FILE *out, struct ctl_num n);

#endif
