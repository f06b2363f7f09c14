// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/top_screen.h"
#include "common/util.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

/* Escape is a key of its own here; what follows within this time is one that it begins. */
#define ESCAPE_MS 25

static SCREEN *screen;
static attr_t attributes[STYLES];
static short pairs[STYLES];

static const struct {
	short color;   /* -1: the terminal's own */
	attr_t always; /* with colour as well */
	attr_t mono;   /* instead of colour */
} styles[STYLES] = {
	[STYLE_PLAIN] = {-1, A_NORMAL, A_NORMAL},
	[STYLE_HEAD] = {-1, A_REVERSE | A_BOLD, A_REVERSE | A_BOLD},
	[STYLE_LABEL] = {COLOR_CYAN, A_NORMAL, A_NORMAL},
	[STYLE_VALUE] = {-1, A_BOLD, A_BOLD},
	[STYLE_GOOD] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
	[STYLE_WARN] = {COLOR_YELLOW, A_BOLD, A_BOLD},
	[STYLE_BAD] = {COLOR_RED, A_BOLD, A_REVERSE},
	[STYLE_MEMORY] = {COLOR_GREEN, A_NORMAL, A_BOLD},
	[STYLE_STORE] = {COLOR_BLUE, A_BOLD, A_NORMAL},
	[STYLE_SAME] = {COLOR_MAGENTA, A_NORMAL, A_NORMAL},
	[STYLE_IN] = {COLOR_GREEN, A_NORMAL, A_NORMAL},
	[STYLE_OUT] = {COLOR_YELLOW, A_NORMAL, A_NORMAL},
	[STYLE_DIM] = {-1, A_DIM, A_NORMAL},
};

static void set_styles(void)
{
	const char *no_color = getenv("NO_COLOR");
	bool color = has_colors() && !(no_color && *no_color);
	short bg = COLOR_BLACK;

	if (color) {
		start_color();
		if (use_default_colors() == OK)
			bg = -1;
	}
	for (short i = 0; i < STYLES; i++) {
		attributes[i] = color ? styles[i].always : styles[i].mono;
		pairs[i] = 0;
		if (color && styles[i].color >= 0 &&
		    init_pair((short)(i + 1), styles[i].color, bg) == OK)
			pairs[i] = (short)(i + 1);
	}
}

int top_screen_open(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	setlocale(LC_CTYPE, "");
	/* Unlike initscr(), this returns when TERM is of no use. */
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return -ENODEV;
	/* newterm() is content with terminals that cannot address the cursor. */
	if (!cursor_address) {
		top_screen_close();
		return -ENODEV;
	}
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	set_styles();
	return 0;
}

void top_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

bool top_screen_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

void top_screen_size(int *ret_width, int *ret_height)
{
	struct winsize ws;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 0 && ws.ws_col > 0)
		resize_term(ws.ws_row, ws.ws_col);
	*ret_width = COLS;
	*ret_height = LINES;
}

void top_screen_draw(const struct canvas *c)
{
	for (int y = 0; y < c->height; y++) {
		for (int x = 0; x < c->width; x++) {
			const struct canvas_cell *cell = canvas_at(c, x, y);
			wchar_t text[2] = {(wchar_t)cell->ch, L'\0'};
			cchar_t cc;

			setcchar(&cc, text, attributes[cell->style], pairs[cell->style], NULL);
			/* The last place of the last line fails after it was drawn. */
			mvadd_wch(y, x, &cc);
		}
	}
	refresh();
}

void top_screen_redraw(void)
{
	clearok(stdscr, TRUE);
}

int top_screen_key(void)
{
	int ch = getch();

	if (ch == ERR)
		return SCREEN_NO_KEY;
	if (ch == 'L' - '@')
		return SCREEN_REDRAW;
	return ch < 0x80 ? ch : SCREEN_ANY_KEY;
}
