// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/canvas.h"
#include "common/util.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define EIGHTHS 8

int canvas_init(struct canvas *c, int width, int height, bool utf8)
{
	struct canvas_cell *cells;

	z_assert(width > 0 && height > 0);
	cells = calloc((size_t)width * (size_t)height, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)width * (size_t)height; i++)
		cells[i].ch = ' ';
	*c = (struct canvas){.width = width, .height = height, .utf8 = utf8, .cells = cells};
	return 0;
}

void canvas_deinit(struct canvas *c)
{
	free(c->cells);
	*c = (struct canvas){0};
}

static struct canvas_cell *cell_at(const struct canvas *c, int x, int y)
{
	if (x < 0 || y < 0 || x >= c->width || y >= c->height)
		return NULL;
	return &c->cells[(size_t)y * (size_t)c->width + (size_t)x];
}

const struct canvas_cell *canvas_at(const struct canvas *c, int x, int y)
{
	return cell_at(c, x, y);
}

void canvas_put(struct canvas *c, int x, int y, enum canvas_style style, uint32_t ch)
{
	struct canvas_cell *cell = cell_at(c, x, y);

	if (cell)
		*cell = (struct canvas_cell){ch, (uint8_t)style};
}

int canvas_text(struct canvas *c, int x, int y, enum canvas_style style, const char *s)
{
	for (; *s; s++, x++)
		canvas_put(c, x, y, style, *s < 0x20 || *s > 0x7e ? '?' : (uint32_t)*s);
	return x;
}

int canvas_text_right(struct canvas *c, int end, int y, enum canvas_style style, const char *s)
{
	return canvas_text(c, end - (int)strlen(s), y, style, s);
}

int canvas_printf(struct canvas *c, int x, int y, enum canvas_style style, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return canvas_text(c, x, y, style, text);
}

uint32_t canvas_fill(const struct canvas *c, unsigned fill)
{
	static const uint32_t utf8[] = {0x2588, 0x2593, 0x2591, '!'}; /* full, dark, light */
	static const uint32_t ascii[] = {'#', '=', '-', '!'};

	z_assert(fill < ARRAY_SIZE(utf8));
	return c->utf8 ? utf8[fill] : ascii[fill];
}

/* The rest of a bar's last column, in eighths from the left. */
static uint32_t left_eighths(unsigned n)
{
	return 0x2590 - n; /* U+258F is one eighth, U+2588 all eight */
}

void canvas_bar(struct canvas *c, int x, int y, int width, const struct canvas_part *parts,
		unsigned n)
{
	int inner = width - 2, at = 0;
	double sum = 0;

	if (inner < 1)
		return;
	canvas_put(c, x, y, STYLE_LABEL, '[');
	canvas_put(c, x + width - 1, y, STYLE_LABEL, ']');
	for (unsigned i = 0; i < n; i++) {
		double end;

		sum = fmin(sum + fmax(parts[i].share, 0), 1);
		end = sum * inner;
		for (; at + 1 <= end + 1e-9; at++)
			canvas_put(c, x + 1 + at, y, parts[i].style, canvas_fill(c, parts[i].fill));
		if (i + 1 < n || parts[i].fill || at >= inner)
			continue;
		if (c->utf8 && (end - at) * EIGHTHS >= 1)
			canvas_put(c, x + 1 + at, y, parts[i].style,
				   left_eighths((unsigned)((end - at) * EIGHTHS)));
		else if (!c->utf8 && end - at >= 0.5)
			canvas_put(c, x + 1 + at, y, parts[i].style, canvas_fill(c, 0));
	}
}

void canvas_column(struct canvas *c, int x, int foot, int height, enum canvas_style style,
		   double share)
{
	static const char ascii[] = " .,:-=+*#";
	int full = (int)ceil(fmin(fmax(share, 0), 1) * height * EIGHTHS - 1e-9);

	for (int row = 0; row < height && full > 0; row++, full -= EIGHTHS) {
		int level = full < EIGHTHS ? full : EIGHTHS;

		canvas_put(c, x, foot - row, style,
			   c->utf8 ? 0x2580 + (uint32_t)level : (uint32_t)ascii[level]);
	}
}

static void put_utf8(FILE *out, uint32_t ch)
{
	if (ch < 0x80) {
		fputc((int)ch, out);
		return;
	}
	z_assert(ch >= 0x800 && ch < 0x10000); /* the only others that are drawn */
	fputc((int)(0xe0 | ch >> 12), out);
	fputc((int)(0x80 | (ch >> 6 & 0x3f)), out);
	fputc((int)(0x80 | (ch & 0x3f)), out);
}

void canvas_print(FILE *out, const struct canvas *c)
{
	for (int y = 0; y < c->height; y++) {
		int end = c->width;

		while (end > 0 && canvas_at(c, end - 1, y)->ch == ' ')
			end--;
		for (int x = 0; x < end; x++)
			put_utf8(out, canvas_at(c, x, y)->ch);
		fputc('\n', out);
	}
}
