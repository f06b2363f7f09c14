/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strings of others as JSON. */
#ifndef ZSWAPD_CTL_JSON_H
#define ZSWAPD_CTL_JSON_H

#include <stdio.h>

#include "ctl/reply.h"

/* With quotes.  Bytes that are no ASCII are taken for Latin-1, so that any text can be told. */
void json_string(FILE *out, const char *s);

/* null if it is not known. */
void json_text(FILE *out, const struct ctl_text *t);
void json_num(FILE *out, struct ctl_num n);

#endif
