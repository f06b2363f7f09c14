/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The picture of a struct top_model on a canvas of any size: at 80x24 everything, on more rows
 * taller curves, on fewer the least important rows left out, and below TOP_WIDTH_MIN x
 * TOP_HEIGHT_MIN only a word about that.  Draws, computes nothing that outlives the picture.
 */
#ifndef ZSWAPD_CTL_TOP_VIEW_H
#define ZSWAPD_CTL_TOP_VIEW_H

#include "ctl/canvas.h"
#include "ctl/top_model.h"

#define TOP_WIDTH_MIN  44
#define TOP_HEIGHT_MIN 8

/* @device: the one that is asked, shown before it has answered.  @interval_s: for the last line. */
void top_view_draw(struct canvas *c, const struct top_model *m, const char *device,
		   double interval_s);

#endif
