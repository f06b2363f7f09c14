/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The terminal, by ncurses.  Colours are used where the terminal has them and NO_COLOR is not set,
 * otherwise bold, dim and reverse.  One at a time, one thread.
 */
#ifndef ZSWAPD_CTL_TOP_SCREEN_H
#define ZSWAPD_CTL_TOP_SCREEN_H

#include "ctl/canvas.h"

/* What top_screen_key() returns beside characters. */
#define SCREEN_NO_KEY  (-1)
#define SCREEN_REDRAW  (-2)
#define SCREEN_ANY_KEY (-3)

/* Takes standard input and output over.  -ENOTTY: they are no terminal; -ENODEV: TERM is unknown
 * or cannot move the cursor.
 */
int top_screen_open(void);

/* Gives the terminal back as it was.  Does nothing if it is not open. */
void top_screen_close(void);

/* True if the locale is a UTF-8 one. */
bool top_screen_utf8(void);

/* After SIGWINCH, and once before the first canvas. */
void top_screen_size(int *ret_width, int *ret_height);

/* Shows a canvas of the size that top_screen_size() gave. */
void top_screen_draw(const struct canvas *c);

/* Next time, everything is sent again. */
void top_screen_redraw(void);

/* Never waits. */
int top_screen_key(void);

#endif
