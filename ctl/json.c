// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/json.h"

#include <inttypes.h>

#define REPLACEMENT 0xfffdu

/* The character at @s, and in *ret_len its bytes, at least 1; REPLACEMENT for what is no UTF-8. */
static uint32_t character(const char *s, size_t *ret_len)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; /* by the bytes that follow */
	unsigned char first = (unsigned char)s[0];
	size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
	uint32_t ch = more ? first & (0x3fu >> more) : first;

	*ret_len = 1;
	if (first < 0x80)
		return first;
	if (more == 0 || first > 0xf4)
		return REPLACEMENT;
	for (size_t i = 1; i <= more; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return REPLACEMENT;
		ch = ch << 6 | ((unsigned char)s[i] & 0x3f);
	}
	/* Longer than need be, half of a pair, or beyond what there is. */
	if (ch < least[more] || (ch >= 0xd800 && ch < 0xe000) || ch > 0x10ffff)
		return REPLACEMENT;
	*ret_len = more + 1;
	return ch;
}

static void put_character(FILE *out, uint32_t ch)
{
	if (ch == '"' || ch == '\\')
		fprintf(out, "\\%c", (int)ch);
	else if (ch >= 0x20 && ch <= 0x7e)
		fputc((int)ch, out);
	else if (ch < 0x10000)
		fprintf(out, "\\u%04" PRIx32, ch);
	else
		fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xd800 + ((ch - 0x10000) >> 10),
			0xdc00 + (ch & 0x3ff));
}

void json_string(FILE *out, const char *s)
{
	size_t len;

	fputc('"', out);
	for (; *s; s += len)
		put_character(out, character(s, &len));
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
