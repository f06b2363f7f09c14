// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/json.h"

#include <inttypes.h>

void json_string(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;

		if (ch == '"' || ch == '\\')
			fprintf(out, "\\%c", ch);
		else if (ch < 0x20 || ch > 0x7e)
			fprintf(out, "\\u%04x", ch);
		else
			fputc(ch, out);
	}
	fputc('"', out);
}

void json_text(FILE *out, const struct ctl_text *t)
{
	if (t->known)
		json_string(out, t->s);
	else
		fputs("null", out);
}

void json_num(FILE *out, struct ctl_num n)
{
	if (n.known)
		fprintf(out, "%" PRIu64, n.v);
	else
		fputs("null", out);
}
