/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A grid of characters with styles: what a screen shall show, without a screen.  Whatever is put
 * outside of the grid is cut off, so that who draws needs to know no more than where to begin.
 */
#ifndef ZSWAPD_CTL_CANVAS_H
#define ZSWAPD_CTL_CANVAS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Everything must be told apart without them too: they are lost without colour. */
enum canvas_style {
	STYLE_PLAIN,
	STYLE_HEAD,  /* title line */
	STYLE_LABEL, /* names of things */
	STYLE_VALUE,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
	STYLE_MEMORY, /* of bars */
	STYLE_STORE,
	STYLE_SAME,
	STYLE_IN, /* of curves */
	STYLE_OUT,
	STYLE_DIM,
	STYLES,
};

struct canvas_cell {
	uint32_t ch; /* code point, printable, one column wide */
	uint8_t style;
};

struct canvas {
	int width, height;
	bool utf8; /* else ASCII only */
	struct canvas_cell *cells;
};

/* Blank.  -ENOMEM. */
int canvas_init(struct canvas *c, int width, int height, bool utf8);
void canvas_deinit(struct canvas *c);

const struct canvas_cell *canvas_at(const struct canvas *c, int x, int y);

void canvas_put(struct canvas *c, int x, int y, enum canvas_style style, uint32_t ch);

/* What is not printable ASCII in @s becomes '?'.  Returns the column behind it. */
int canvas_text(struct canvas *c, int x, int y, enum canvas_style style, const char *s);

/* The same, ending before column @end. */
int canvas_text_right(struct canvas *c, int end, int y, enum canvas_style style, const char *s);

__attribute__((format(printf, 5, 6))) int
canvas_printf(struct canvas *c, int x, int y, enum canvas_style style, const char *fmt, ...);

/* A piece of a bar. */
struct canvas_part {
	double share; /* of the whole, 0 to 1 */
	enum canvas_style style;
	unsigned fill; /* 0 to 3: what tells it apart from its neighbours without colour */
};

/* "[####==--   ]" in @width columns. */
void canvas_bar(struct canvas *c, int x, int y, int width, const struct canvas_part *parts,
		unsigned n);

/* The character of fill @fill, for legends. */
uint32_t canvas_fill(const struct canvas *c, unsigned fill);

/*
 * One column of a curve, @height rows high with its foot in row @foot; @share 0 to 1 of the height.
 * What is above 0 is seen.
 */
void canvas_column(struct canvas *c, int x, int foot, int height, enum canvas_style style,
		   double share);

/* All rows as text, without blanks at their ends. */
void canvas_print(FILE *out, const struct canvas *c);

#endif
