// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/cell.h"
#include "common/size.h"
#include "common/util.h"

#include <inttypes.h>
#include <stdio.h>

#define PAGE_BYTES 4096.0

/* Longer than any bucket but the last, which has no end. */
#define ENDLESS_NS 1000000000000ull

struct cell cell_text(const char *s)
{
	struct cell c;

	snprintf(c.s, sizeof(c.s), "%s", s);
	return c;
}

struct cell cell_count(struct ctl_num n)
{
	struct cell c = {"?"};

	if (n.known)
		snprintf(c.s, sizeof(c.s), "%" PRIu64, n.v);
	return c;
}

struct cell cell_bytes(struct ctl_num n)
{
	char text[SIZE_TEXT_MAX];

	return n.known ? cell_text(size_format(text, n.v)) : cell_text("?");
}

struct cell cell_ratio(double a, double b, bool known, double scale, const char *unit)
{
	struct cell c;

	if (!known)
		return cell_text("?");
	if (b == 0)
		return cell_text("-");
	snprintf(c.s, sizeof(c.s), scale == 100 ? "%.1f%s" : "%.2f%s", a / b * scale, unit);
	return c;
}

struct cell cell_percent(struct ctl_num a, struct ctl_num b)
{
	return cell_ratio((double)a.v, (double)b.v, a.known && b.known, 100, " %");
}

struct cell cell_compression(struct ctl_num pages, struct ctl_num bytes)
{
	bool known = pages.known && bytes.known;

	/* The two counters are not of one instant, so one may say empty before the other. */
	if (known && pages.v == 0)
		return cell_text("-");
	return cell_ratio((double)pages.v * PAGE_BYTES, (double)bytes.v, known, 1, "");
}

/* Two digits at least, and none behind the point once there are two before it. */
static struct cell two_digits(double v, const char *unit)
{
	struct cell c;

	snprintf(c.s, sizeof(c.s), v < 9.95 ? "%.1f%s" : "%.0f%s", v, unit);
	return c;
}

struct cell cell_time(struct ctl_num ns)
{
	static const char *const units[] = {" us", " ms", " s"};
	double v = (double)ns.v / 1000;
	size_t u = 0;
	struct cell c;

	if (!ns.known)
		return cell_text("?");
	if (ns.v > ENDLESS_NS)
		return cell_text("> 2 min");
	if (ns.v < 1000) {
		snprintf(c.s, sizeof(c.s), "%" PRIu64 " ns", ns.v);
		return c;
	}
	for (; v >= 999.5 && u + 1 < ARRAY_SIZE(units); u++)
		v /= 1000;
	return two_digits(v, units[u]);
}

struct cell cell_percentile(const struct ctl_histogram *h, double share)
{
	if (!h)
		return cell_text("?");
	if (!h->count)
		return cell_text("-");
	return cell_time(ctl_histogram_percentile(h, share));
}

struct cell cell_short(double v)
{
	static const char *const units[] = {"", "k", "M", "G", "T"};
	size_t u = 0;

	if (v < 0.05)
		return cell_text("0");
	for (; v >= 999.5 && u + 1 < ARRAY_SIZE(units); u++)
		v /= 1000;
	return two_digits(v, units[u]);
}

struct ctl_num num_sum(struct ctl_num a, struct ctl_num b)
{
	return (struct ctl_num){a.known && b.known, a.v + b.v};
}
